"""Another user of the machine who opens a uverbs socket before the lab does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from common import uverbs
from common.rights import NOBODY

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: listens as another user")


@contextmanager
def uverbs_of_a_stranger(host: str) -> Iterator[None]:
    """While it is entered, a socket of another user listens under the name of this host's uverbs socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        os.seteuid(NOBODY)
        try:
            listening.bind(uverbs.address(host))
            listening.listen()
        finally:
            os.seteuid(0)
        yield
