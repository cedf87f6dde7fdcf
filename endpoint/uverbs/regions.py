"""The memory that a program has registered: made for it, or its own from before."""

import os
from collections.abc import Callable
from typing import Any

from common import uverbs
from common.fields import Fields
from endpoint.transport import MemoryRegion, Transport
from endpoint.uverbs.refusal import RefusedError, has_room, of_kernel

SECRET_BYTES = 32
ADDRESSES = 1 << 63
"""Addresses that a program's memory may have: offsets of files have 63 bits, and so has a program's half of memory."""
Sink = Callable[[int, memoryview], bool]
"""Puts bytes at an offset of a region; False: some of them could not be written."""


class ProgramMemory:
    """The address space of a process, opened with the first region: `process` gives its number then. `secret` has been
    told to the program, which runs as `user`.

    The program's pages are never mapped here: the agent writes by the file `/proc/PID/mem`, where an unmapped page is
    an error of the call and no signal. The file belongs to the address space that was there when it was opened, so a
    process number that is used again leads nowhere. Whether it is the right one is proved: the program keeps the
    secret of the session where it says, and the agent reads it there.
    """

    def __init__(self, process: Callable[[], int], secret: bytes, user: int) -> None:
        self.secret = secret
        self._process = process
        self._user = user
        self._file: int | None = None

    def sink(self, address: int, proof: int) -> Sink:
        """A writer to the memory from `address` on; the secret lies at `proof`. Raises `RefusedError`."""
        if self._file is None:
            self._file = self._open(proof)
        file = self._file

        def write(offset: int, data: memoryview) -> bool:
            try:
                written = os.pwrite(file, data, address + offset)
                # 0: the process has ended. A NIC has pinned its pages, and places bytes until the queue pair goes.
                return written in (0, len(data))
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
            secret = os.pread(file, len(self.secret), proof)
        except (OSError, OverflowError):
            secret = b""
        if secret != self.secret:
            os.close(file)
            raise RefusedError(f"reg_mr.proof is {proof:#x}; the secret of this session must lie there")
        return file


MakeMemory = Callable[[int], tuple[int, memoryview]]
"""Memory of so many bytes and a descriptor of it for the program. Raises OSError."""


class Regions:
    """A program's regions by lkey. Without `memory`, memory that the program already has cannot be registered."""

    def __init__(
        self, transport: Transport, limits: uverbs.ProgramLimits, make_memory: MakeMemory, memory: ProgramMemory | None
    ) -> None:
        self._transport = transport
        self._limits = limits
        self._make_memory = make_memory
        self._memory = memory
        self._by_lkey: dict[int, MemoryRegion] = {}

    def get(self, lkey: int) -> MemoryRegion | None:
        """The region of a key; None where it is not this program's."""
        return self._by_lkey.get(lkey)

    def secret(self) -> dict[str, str]:
        """What a program needs to register its own memory, as the answer to `open` has it."""
        return {} if self._memory is None else {"secret": self._memory.secret.hex()}

    def register(self, request: Fields) -> tuple[int, MemoryRegion]:
        """The descriptor of new memory for the program, and its region. Raises RefusedError or OSError."""
        held = sum(region.length for region in self._by_lkey.values())
        length = request.integer("length", 1, 1 << 62)
        has_room(self._limits, "regions", len(self._by_lkey))
        if held + length > self._limits.memory_bytes:
            raise RefusedError(
                f"reg_mr.length is {length}; {self._limits.memory_bytes - held} bytes are left of the"
                f" {self._limits.memory_bytes} that a program may register (ENOMEM)"
            )
        remote_write = request.boolean("remote_write", True)
        va = sink = None
        if request.has("addr"):  # the program's own memory; the new one is for sending
            if self._memory is None:
                raise RefusedError("this NIC does not register memory that a program already has")
            address = request.integer("addr", 0, ADDRESSES - length)
            proof = request.integer("proof", 0, ADDRESSES - SECRET_BYTES)
            va = request.integer("iova", 0, (1 << 64) - length, address)
            sink = self._memory.sink(address, proof)
        domain = request.integer("domain", 0, (1 << 31) - 1, 0)
        descriptor, buffer = self._make_memory(length)
        try:
            region = self._transport.register_memory(buffer, remote_write=remote_write, va=va, sink=sink, domain=domain)
        except ValueError:
            os.close(descriptor)
            raise
        self._by_lkey[region.lkey] = region
        return descriptor, region

    def deregister(self, request: Fields) -> dict[str, Any]:
        """Give a region back."""
        lkey = request.integer("lkey")
        if lkey not in self._by_lkey:
            raise RefusedError(f"dereg_mr.lkey is {lkey:#x}, which is not registered here")
        self._transport.deregister_memory(self._by_lkey.pop(lkey))
        return {}

    def close(self) -> None:
        """Give everything back."""
        for region in self._by_lkey.values():
            self._transport.deregister_memory(region)
        self._by_lkey.clear()
        if self._memory is not None:
            self._memory.close()
