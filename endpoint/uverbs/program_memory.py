"""Memory that a program already has, written to by the agent in the program's own address space.

The program's pages are never mapped here: the agent writes by the file `/proc/PID/mem`, where an unmapped page is an
error of the call and no signal. The file belongs to the address space that was there when it was opened, not to the
process number, so a number that is used again leads nowhere. Whether it is the right address space is proved: the
program keeps a secret of the session where it says, and the agent reads it there.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from endpoint.uverbs.refusal import RefusedError, of_kernel

SECRET_BYTES = 32
ADDRESSES = 1 << 63
"""Addresses that a program's memory may have: offsets of files have 63 bits, and so has a program's half of memory."""
Sink = Callable[[int, memoryview], bool]
"""Puts bytes at an offset of a region; False: some of them could not be written."""


class ProgramMemory:
    """The address space of a process, opened with the first region: `process` gives its number then. `secret` has been
    told to the program, which runs as `user`."""

    def __init__(self, process: Callable[[], int], secret: bytes, user: int) -> None:
        self.secret = secret
        self._process = process
        self._user = user
        self._file: int | None = None

    def sink(self, address: int, proof: int) -> Sink:
        """What writes to the memory from `address` on; the secret lies at `proof`. Raises `RefusedError`."""
        if self._file is None:
            self._file = self._open(proof)
        file = self._file

        def write(offset: int, data: memoryview) -> bool:
            try:
                return os.pwrite(file, data, address + offset) == len(data)
            except (OSError, OverflowError):
                return False

        return write

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, proof: int) -> int:
        pid = self._process()
        try:
            file = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise RefusedError(
                f"the memory of process {pid} cannot be opened: {of_kernel(error)}; registering existing memory"
                " needs an agent of root, or of the program's user"
            ) from error
        # A set-uid program's memory is root's: a user who starts one with the secret in its arguments may not write.
        if os.fstat(file).st_uid != self._user:
            os.close(file)
            raise RefusedError(f"process {pid} has the rights of another user than {self._user}, which connected")
        try:
            found = os.pread(file, len(self.secret), proof)
        except (OSError, OverflowError):
            found = b""
        if found != self.secret:
            os.close(file)
            raise RefusedError(f"reg_mr.proof is {proof:#x}; the secret of this session must lie there")
        return file
