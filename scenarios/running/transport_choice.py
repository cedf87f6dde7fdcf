"""What `--transport` chooses: which endpoint the hosts run, its settings, and whether the fabric has one plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A choice of `--transport`. `settings` are the agent's own (endpoint/core/config.py, endpoint/roce/config.py)."""

    name: str
    description: str
    agent: str  # the agent's --transport
    settings: Mapping[str, Any] = field(default_factory=dict)  # the agent's --set
    single_plane: bool = False
    queue_pairs: int = 1


TRANSPORTS: Mapping[str, TransportChoice] = {
    transport.name: transport
    for transport in (
        TransportChoice("mrc", "MRC: sprays over every path and plane, leaves bad ones", "mrc"),
        TransportChoice(
            "mrc-oblivious", "MRC that sprays without looking at path health", "mrc", {"selection": "oblivious"}
        ),
        TransportChoice("mrc-single-path", "MRC on one path until it fails", "mrc", {"selection": "single_path"}),
        TransportChoice(
            "roce", "RoCEv2 RC, one queue pair: one path by ECMP, go-back-N, no PFC", "roce", single_plane=True
        ),
        TransportChoice("roce-8qp", "the same on eight queue pairs", "roce", single_plane=True, queue_pairs=8),
    )
}


def transport(name: str, settings: Mapping[str, Any] | None = None) -> TransportChoice:
    """The transport of this name; ValueError with the valid names otherwise. `settings` are for MRC endpoints only."""
    if name not in TRANSPORTS:
        raise ValueError(f"no transport {name!r}: valid are {', '.join(TRANSPORTS)}")
    found = TRANSPORTS[name]
    return replace(found, settings={**(settings or {}), **found.settings}) if found.agent == "mrc" else found
