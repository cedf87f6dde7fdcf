"""The attributes of queue pairs: names, ranges, and when each may be set (OCP MRC API, `mrc_qp_attr` and its masks).

The API passes a structure and a mask of the members that count; here the names that are given are the mask. An
attribute belongs to steps of the state machine, as the API's table of required attributes has it; some may also be
changed while the queue pair stays in a state. What is not given keeps its value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from endpoint.nic.config import QUEUE_MAX, RETRIES_WITHOUT_END, TIMEOUT_MAX, WRITE_IMM_MAX
from endpoint.nic.memory import NO_WRITES
from endpoint.transport import QPInfo, QPState

PMTU_MIN, PMTU_MAX = 256, 65535
"""Payload bytes of a full packet; the least is InfiniBand's."""
MPR_MAX = 64
"""In units of 128 PSNs: half of what a field of 8 bits could say, so that a window never exceeds 8192 PSNs."""
CAP_TRIM_NACK_DEST_UNSUPPORTED, CAP_DYNAMIC_MPR, CAP_SVC_TIME_DEST_UNSUPPORTED = 1, 2, 4
"""Bits of `cap` (`mrc_qp_cap`)."""

RANGES: dict[str, tuple[int, int]] = {
    "qpn": (0, (1 << 24) - 1),
    "psn": (0, (1 << 24) - 1),
    "mpr": (1, MPR_MAX),
    "max_write_imm": (1, WRITE_IMM_MAX),
    "max_send_wr": (1, QUEUE_MAX),
    "max_recv_wr": (1, QUEUE_MAX),
    "cc_profile_id": (0, (1 << 64) - 1),
    "ev_profile_id": (0, (1 << 64) - 1),
    "qp_hint": (0, (1 << 32) - 1),
    "pmtu": (PMTU_MIN, PMTU_MAX),
    "mpr_dest": (1, MPR_MAX),
    "max_wimm": (1, WRITE_IMM_MAX),
    "max_wimm_dest": (1, WRITE_IMM_MAX),
    "timeout": (0, TIMEOUT_MAX),
    "linear_cnt": (0, 7),
    "exp_cnt": (0, RETRIES_WITHOUT_END),
    "retry_cnt": (0, 7),
    "cap": (0, CAP_TRIM_NACK_DEST_UNSUPPORTED | CAP_DYNAMIC_MPR | CAP_SVC_TIME_DEST_UNSUPPORTED),
    "sq_psn": (0, (1 << 24) - 1),
    "domain": (NO_WRITES, (1 << 31) - 1),
}
"""The range of each integer attribute of a QP."""


class VerbError(ValueError):
    """A verb was called with what the rules do not allow; nothing was changed."""


class BusyError(VerbError):
    """A queue pair still has what was to be destroyed or changed; nothing was changed."""


@dataclass(frozen=True, slots=True)
class When:
    """`steps` are the states on whose way an attribute may be set, `live` those that a QP may stay in meanwhile."""

    steps: tuple[QPState, ...]
    live: tuple[QPState, ...] = ()


_INIT = When((QPState.INIT,), (QPState.INIT,))
_RTR = When((QPState.INIT, QPState.RTR), (QPState.INIT,))
_RTS = When((QPState.RTS,), (QPState.RTS, QPState.SQD))
_SQ_PSN = When((QPState.INIT, QPState.RTS), (QPState.INIT,))  # verbs set it on the way to RTS
_DOMAIN = When((QPState.INIT, QPState.RTR, QPState.RTS), (QPState.INIT, QPState.RTS, QPState.SQD))

MRC_ATTRIBUTES: Mapping[str, When] = {
    "ev_profile_id": _INIT,
    "cc_profile_id": _INIT,
    "qp_hint": When((QPState.INIT, QPState.RTR, QPState.RTS), (QPState.INIT, QPState.RTR)),
    "sq_psn": _SQ_PSN,
    "max_wimm_dest": _RTR,
    "mpr_dest": When(_RTR.steps, (QPState.INIT, QPState.RTR, QPState.RTS)),
    "cap": _RTR,
    "max_wimm": _RTS,
    "mpr": _RTS,
    "timeout": _RTS,
    "linear_cnt": _RTS,
    "exp_cnt": _RTS,
    "domain": _DOMAIN,
}
"""Of an MRC queue pair. `mpr_dest` of a QP in RTR or RTS needs the dynamic MPR, at both ends. A QP reaches the
memory of its `domain`; -1: it takes no remote writes."""

ROCE_ATTRIBUTES: Mapping[str, When] = {"sq_psn": _SQ_PSN, "timeout": _RTS, "retry_cnt": _RTS, "domain": _DOMAIN}
"""Of the baseline's queue pair."""


def check_modification(
    qpn: int, known: Mapping[str, When], given: Mapping[str, Any], state: QPState, target: QPState | None
) -> None:
    """Raises `VerbError` unless all of `given` may be set on the way from `state` to `target`; None: in `state`."""
    for name, value in given.items():
        when = known.get(name)
        if when is None:
            raise VerbError(f"QP {qpn} has no attribute {name!r} to modify; valid: {', '.join(known)}")
        check_range(name, value, name)
        if (state in when.live) if target is None else (target in when.steps):
            continue
        valid = [f"on the way to {step.name}" for step in when.steps] + [f"in {kept.name}" for kept in when.live]
        asked = f"in {state.name}" if target is None else f"on the way to {target.name}"
        raise VerbError(f"QP {qpn}: {name} cannot be set {asked}; valid: {', '.join(valid)}")


def take_attributes(kind: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes `known`, with those that are `given` in place of them. Raises `VerbError`."""
    for name in given:
        if name not in known:
            raise VerbError(f"{kind} has no attribute {name!r}; valid: {', '.join(known)}")
    taken = {**known, **given}
    for name, value in taken.items():
        if name in RANGES:
            check_range(name, value, name)
        elif isinstance(known[name], bool) and type(value) is not bool:
            raise VerbError(f"{name} is {value!r}; it must be true or false")
        elif isinstance(known[name], str) and type(value) is not str:
            raise VerbError(f"{name} is {value!r}; it must be a string")
    return taken


def check_peer(peer: QPInfo, *names: str) -> None:
    """Raises `VerbError` if one of these attributes of a peer is none that a peer can have."""
    for name in names:
        check_range(name, getattr(peer, name), f"the peer's {name}")


def check_pmtu(pmtu: int, largest: int) -> None:
    """Raises `VerbError` for a PMTU that exceeds the profile's."""
    if pmtu > largest:
        raise VerbError(f"pmtu is {pmtu}; the profile's, which fits the ports, is {largest}")


def check_range(name: str, value: Any, shown: str) -> None:
    """Raises `VerbError` for a value that is no integer, or not in the attribute's range."""
    low, high = RANGES[name]
    if type(value) is not int:
        raise VerbError(f"{shown} is {value!r}; it must be an integer")
    if not low <= value <= high:
        raise VerbError(f"{shown} is {value}; it must be from {low} to {high}")
