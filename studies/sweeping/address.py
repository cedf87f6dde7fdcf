"""The address of a Dask cluster: a scheduler's, or hosts that ssh reaches.

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
    """`text` is a scheduler's address, such as tls://host:8786, or hosts with commas between them."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError for a text that is neither."""
        scheme, separator, place = text.partition("://")
        if scheme not in ("tcp", "tls") or not place if separator else not all(text.split(",")):
            raise ValueError(f"must be a scheduler such as tls://host:8786, or hosts such as a,b,c (got {text!r})")
        return cls(text)

    @property
    def hosts(self) -> list[str]:
        """Hosts on which the lab starts scheduler and workers itself; none where there is a scheduler."""
        return [] if "://" in self.text else self.text.split(",")

    def protect(self, *, insecure: bool) -> None:
        """ClusterError where strangers could listen or run code, unless that is allowed by `insecure`."""
        if self.text.startswith("tcp://") and not _is_loopback(self.text.removeprefix("tcp://")) and not insecure:
            raise ClusterError(
                f"--cluster {self.text}: over tcp:// anybody on the way can run code as you; start the scheduler with"
                " TLS and use tls://, give hosts (a,b,c) for a cluster that the lab protects, or add --insecure"
            )


def _is_loopback(place: str) -> bool:
    host = place.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
