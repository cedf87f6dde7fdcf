"""Settings of an endpoint, and what follows from them and the profile.

Every time and size is a function of the profile's base round trip, rates and packet size, so that the same endpoint
is right at 100 Gb/s and 12 µs and at 10 Mb/s and 54 ms. `jitter_ns` is how late a process of this world may be
scheduled: 0 in virtual time, some tens of milliseconds where switches and hosts share two cores. A packet that is
late by less than it is not a lost packet.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from endpoint.nic.wire import MPR_UNIT

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from endpoint.profile import NicProfile

NEVER: Final = 1 << 61  # compiled code keeps it in a register; 1 << 62 would be an object
"""A deadline that does not come, in ns."""

RATE_UNLIMITED_BPS = 1_000_000_000
"""The rate that a port without a rate has in the bandwidth-delay product."""
ACK_TIMEOUT_UNIT_NS = 1024
TIMEOUT_MAX = 24
MPR_UNITS_MIN, MPR_UNITS_MAX = 8, 32
RETRIES_WITHOUT_END = 25
"""This many exponential retries mean no end of them (OCP MRC API)."""
QUEUE_MAX = 1 << 20
"""Requests, frames or events that a queue may be set to hold."""
WRITE_IMM_MAX = QUEUE_MAX
CONGESTED_EV = ("skip", "swap")
RETRANSMIT_PLANE = ("other", "any")


class ConfigError(ValueError):
    """A setting breaks a rule; the message names it, the rule and the valid choices."""


class AlgorithmError(RuntimeError):
    """An algorithm from a file of the user's own broke; the message has file, line and rule."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices of a user. None means: derived from the profile."""

    jitter_ns: int | None = None
    """None: the profile's."""
    congestion: str = "nscc"
    nscc: dict[str, float] | None = None
    """NSCC's parameters by the names of the OCP MRC API (`mrc/congestion/cc_profile.py`); the rest is derived."""
    selection: str = "mrc"
    loss: str = "reorder"
    operations: str = "mrc"
    """How port status updates are told and heeded (`mrc/operations.py`)."""
    parameters: dict[str, Any] | None = None
    """Parameters that the chosen algorithms declare, by dotted names: `selection.NAME`, `congestion.NAME`, `loss.NAME`.
    Such a name is a setting by itself."""
    evs_active: int = 128
    """EVs in rotation per QP, in equal numbers per plane, where the fabric has that many."""
    evs_backup: int = 64
    evs_min_active_share: float = 0.25
    """Floor of each plane: with no more than this share of its EVs left, a loss that chance explains takes none out."""
    ev_rest_packets: int = 0
    """Packets of a QP in an EV's plane that a mark or trim keeps the EV out of at least. With 0 the EV is passed over
    once (guidance of OCP MRC 11.2.2, which leaves the length to the implementation)."""
    congested_ev: str = "swap"
    """The effect of a mark or trim on an EV: "swap" puts a backup of its plane in its place (figure 14 of the paper)
    and rests it only where there is no backup; "skip" rests the EV, as the specification words it."""
    losses_shrink: bool = False
    """Whether NSCC takes the bytes of a packet that is inferred lost off its window where switches trim (UEC 3.6.13.5)
    or, as the reference simulator, leaves the window alone. Where nothing trims, such a loss counts as a trim."""
    plane_suspicion: bool = False
    """Whether the losses of a plane's EVs together take the whole plane out: a rule of this lab. The paper's MRC cannot
    leave a plane that loses packets but is up (section 4)."""
    retransmit_plane: str = "any"
    """The plane of a packet that is sent again: "any", or "other" than that which lost it, a rule of this lab."""
    trims_before_wait: int = 8
    """How often a packet is sent again at once after a trim. Later copies wait for a random part of a base round trip
    each: the one rule of this lab that is on by default, because without it a packet that arrives behind the same burst
    in each round trip can be trimmed without end. 0: no copy waits."""
    loss_patience_ns: int = 0
    """How much longer than the loss rule needs a NIC waits before it takes a packet for lost: a device's own."""
    probes_to_resurrect: int = 2
    """Probes in a row that must come back unmarked before an ASSUMED_BAD EV is used again; doubled on each relapse."""
    probe_share: float = 0.02
    """Background probes of ASSUMED_BAD EVs, of all queue pairs of the host together: at most this share of the bytes
    that the host sends, one probe per probe interval beside that, and 64 saved up (`mrc/paths/probe_budget.py`). Probes
    that ask about silence: the same share of its data packets."""
    sack_threshold_bytes: int | None = None
    """SACK trigger 1. None: an eighth of the bandwidth-delay product, from 4 KiB to 16 KiB."""
    oor_nack: bool = False
    """Answer a PSN outside the window with a NACK (the table of reasons) instead of silence (rule 6)."""
    timestamps: bool = False
    """Send a TSETH in every write."""
    mpr: int | None = None
    """Window that this side grants, in units of 128 PSNs. None: twice the largest congestion window, 8 to 32."""
    confirm_writes: bool = False
    """Complete every write by its transport acknowledgement (MSN), as those with immediate are, and not by SACKs."""
    max_write_imm: int = 128
    max_send_wr: int = 4096
    max_recv_wr: int = 4096
    timeout: int | None = None
    """Local ACK timeout exponent: 1.024 µs * 2^timeout. None: the first that exceeds `timeout_rtts`."""
    timeout_rtts: int = 16
    """Base round trips and jitters."""
    retry_linear: int = 7
    retry_exponential: int = RETRIES_WITHOUT_END
    events_max: int = 65536
    """Events kept for the driver; the oldest go first."""
    control_frames_max: int = 4096
    """Control frames waiting on a port; more are dropped, as a full NIC queue would."""
    rcv_penalty: bool = False
    """Whether a receiver that several senders load tells each to shrink its window to its share: a rule of this lab."""
    returned_dscp: int | None = None
    """DSCP of packets that switches send back because the link behind them is down. None: no such packet is known."""
    dialect: str = "default"
    """The reading of the specification: default or mrc-client (`endpoint.nic.dialect`)."""


S = TypeVar("S", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Limits:
    """Values that follow from settings and profile; integers in bytes and ns."""

    jitter_ns: int
    base_rtt_ns: int
    rate_bps: int
    """Sum of the port rates."""
    bdp_bytes: int
    """Sum of the port rates times the base round trip, at least two full packets."""
    pmtu: int
    probe_interval_ns: int
    """Between reliability probes of one ASSUMED_BAD EV, and between repetitions of a port status update."""
    reverse_probe_ns: int
    timeout: int
    """Local ACK timeout exponent, and the time that it means."""
    timeout_ns: int
    sack_threshold_bytes: int
    mpr: int
    burst_ns: int
    """How far ahead of its line rate a port may be handed frames, so that a driver may sleep meanwhile: an eighth
    of the base round trip, at least 1 ms; nothing where processes are never late."""
    trimming: bool


def make_settings(values: dict[str, Any]) -> Settings:
    """Settings from keyword arguments. Raises `ConfigError` for a name that does not exist or the wrong type."""
    dotted = {name: value for name, value in values.items() if "." in name}
    if not dotted:
        return fill(Settings(), values, "there is")
    plain = {name: value for name, value in values.items() if name not in dotted}
    return fill(Settings(), {**plain, "parameters": {**(plain.get("parameters") or {}), **dotted}}, "there is")


def fill(defaults: S, values: dict[str, Any], who: str) -> S:
    """A copy of the dataclass with these values. Raises `ConfigError`; `who` begins the complaint.

    `common.fields` tells a type by an example; a setting whose default is None has only its annotation.
    """
    types = {field.name: str(field.type) for field in fields(defaults)}
    for name, value in values.items():
        if name not in types:
            raise ConfigError(f"{who} no setting {name!r}; valid: {', '.join(types)}")
        wanted, _, optional = types[name].partition(" | ")
        wanted = wanted.partition("[")[0]
        right = type(value).__name__ == wanted or (wanted == "float" and type(value) is int)
        if not right and not (optional and value is None):
            raise ConfigError(f"{name} is {value!r}; it must be {TYPES[wanted]}")
    return replace(defaults, **values)


TYPES = {"int": "an integer", "float": "a number", "bool": "true or false", "str": "a string", "dict": "an object"}


def derive(profile: NicProfile, settings: Settings) -> Limits:
    """Raises `ConfigError` for values out of range."""
    jitter_ns = settings.jitter_ns
    if jitter_ns is None:
        jitter_ns = profile.jitter_ns
    rate_bps = sum(port.rate_bps or RATE_UNLIMITED_BPS for port in profile.ports)
    base_rtt_ns = profile.base_rtt_ns
    bdp_bytes = max(rate_bps * base_rtt_ns // 8_000_000_000, 2 * profile.pmtu)
    timeout = settings.timeout
    if timeout is None:
        timeout = timeout_exceeding(settings.timeout_rtts * (base_rtt_ns + jitter_ns))
    mpr = settings.mpr
    if mpr is None:
        mpr = min(MPR_UNITS_MAX, max(MPR_UNITS_MIN, -(-3 * bdp_bytes // (profile.pmtu * MPR_UNIT))))
    threshold = settings.sack_threshold_bytes
    if threshold is None:
        threshold = min(16384, max(4096, bdp_bytes // 8))
    check("jitter_ns", jitter_ns, 0, 10**10)
    check("timeout", timeout, 0, TIMEOUT_MAX)
    check("timeout_rtts", settings.timeout_rtts, 1, 1 << 20)
    check("mpr", mpr, 1, 64)
    check("retry_linear", settings.retry_linear, 0, 7)
    check("retry_exponential", settings.retry_exponential, 0, RETRIES_WITHOUT_END)
    check("evs_active", settings.evs_active, 1, 1 << 16)
    check("evs_backup", settings.evs_backup, 0, 1 << 16)
    check("trims_before_wait", settings.trims_before_wait, 0, 10**6)
    check("loss_patience_ns", settings.loss_patience_ns, 0, 10**10)
    choose("congested_ev", settings.congested_ev, CONGESTED_EV)
    choose("retransmit_plane", settings.retransmit_plane, RETRANSMIT_PLANE)
    check("ev_rest_packets", settings.ev_rest_packets, 0, 1 << 16)
    check("evs_min_active_share", settings.evs_min_active_share, 0.0, 1.0)
    check("sack_threshold_bytes", threshold, 0, 1 << 30)
    check("probe_share", settings.probe_share, 0.0, 1.0)
    check("probes_to_resurrect", settings.probes_to_resurrect, 1, 64)
    check("max_write_imm", settings.max_write_imm, 1, WRITE_IMM_MAX)
    for name in ("max_send_wr", "max_recv_wr", "events_max", "control_frames_max"):
        check(name, getattr(settings, name), 1, QUEUE_MAX)
    return Limits(
        jitter_ns=jitter_ns,
        base_rtt_ns=base_rtt_ns,
        rate_bps=rate_bps,
        bdp_bytes=bdp_bytes,
        pmtu=profile.pmtu,
        probe_interval_ns=2 * base_rtt_ns + jitter_ns,
        reverse_probe_ns=base_rtt_ns + jitter_ns,
        timeout=timeout,
        timeout_ns=ACK_TIMEOUT_UNIT_NS << timeout,
        sack_threshold_bytes=threshold,
        mpr=mpr,
        burst_ns=min(jitter_ns, max(1_000_000, base_rtt_ns // 8)),
        trimming=profile.trimming,
    )


def timeout_exceeding(wanted_ns: int) -> int:
    """The smallest local ACK timeout exponent for more than `wanted_ns`."""
    return min(TIMEOUT_MAX, (wanted_ns // ACK_TIMEOUT_UNIT_NS).bit_length())


def check(name: str, value: float, low: float, high: float) -> None:
    """Raises `ConfigError` for a setting out of range."""
    if not low <= value <= high:
        raise ConfigError(f"{name} is {value}; it must be from {low} to {high}")


def choose(name: str, value: str, valid: tuple[str, ...]) -> None:
    """Raises `ConfigError` for a setting that is none of the valid words."""
    if value not in valid:
        raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(valid)}")
