"""Registered memory: shared with the NIC, so that writes come from it and arrive in it without any copy between."""

import errno
import mmap
import os
from typing import Any

from mrclab.connection import NO_DESCRIPTOR, Connection
from mrclab.errors import RefusedError


class MR:
    """A memory region of `length` bytes, all 0 at first; made by `Context.reg_mr`.

    `buf` is the memory itself, a writable view of bytes: `numpy.frombuffer(mr.buf, numpy.float32)` makes an array of it
    that the NIC sends from and receives into. `addr` and `rkey` are what a peer needs to write here.
    """

    def __init__(self, connection: Connection, length: int, *, remote_write: bool) -> None:
        result, descriptor = connection.call_for_descriptor("reg_mr", length=length, remote_write=remote_write)
        try:
            self.buf = memoryview(_mapped(descriptor, length))
        except OSError as error:
            connection.call("dereg_mr", lkey=result["lkey"])
            raise RefusedError(f"reg_mr: {length} bytes cannot be mapped: {error.strerror}") from error
        self.length = length
        self.lkey: int = result["lkey"]
        self.rkey: int = result["rkey"]
        self.addr: int = result["addr"]
        self._connection = connection

    def read(self, length: int, offset: int = 0) -> bytes:
        """A copy of some of the bytes."""
        return bytes(self.buf[offset : offset + length])

    def write(self, data: bytes, offset: int = 0) -> None:
        """Put bytes there. Raises ValueError where they do not fit."""
        self.buf[offset : offset + len(data)] = data

    def info(self) -> dict[str, Any]:
        """The values that a peer needs, in a plain form: `addr`, `rkey`, `length`."""
        return {"addr": self.addr, "rkey": self.rkey, "length": self.length}

    def close(self) -> None:
        """Deregister: peers can no longer write here. The bytes stay readable for as long as `buf` is kept."""
        self._connection.call("dereg_mr", lkey=self.lkey)


def _mapped(descriptor: int | None, length: int) -> mmap.mmap:
    """The memory behind the descriptor of an answer, which is closed. Raises OSError, also without a descriptor."""
    if descriptor is None:
        raise OSError(errno.EMFILE, NO_DESCRIPTOR)
    try:
        return mmap.mmap(descriptor, length)
    finally:
        os.close(descriptor)
