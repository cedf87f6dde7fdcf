"""The address of a Dask scheduler.

Only the standard library is imported here: an address is checked before Dask is installed.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Self


class ClusterError(RuntimeError):
    """There is no cluster at this address, or none with workers."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """`text` is a scheduler's address, such as tls://host:8786."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError for any other text."""
        scheme, _, place = text.partition("://")
        if scheme not in ("tcp", "tls") or not place:
            raise ValueError(f"must be the address of a Dask scheduler, such as tls://host:8786 (got {text!r})")
        return cls(text)

    def protect(self, *, insecure: bool) -> None:
        """ClusterError where strangers could listen or run code, unless that is allowed by `insecure`."""
        if self.text.startswith("tcp://") and not _is_loopback(self.text.removeprefix("tcp://")) and not insecure:
            raise ClusterError(
                f"--cluster {self.text}: over tcp:// anybody on the way can run code as you; start the scheduler with"
                " TLS and use tls://, or add --insecure"
            )


def _is_loopback(place: str) -> bool:
    host = place.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
