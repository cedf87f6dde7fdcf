"""Congestion-control profiles (OCP MRC API, `mrc_ctl_cc_nscc_cfg`): an algorithm and its parameters, chosen per QP.

A parameter that a profile leaves open follows from the NIC: its base round trip, bandwidth-delay product and packet
size, by the rules that `NsccConfig.resolved` states. Profile 0 is the NIC's own: its settings `congestion` and `nscc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from endpoint.mrc.parameter import Parameter, Values
from endpoint.nic.config import ConfigError

REFERENCE_BDP_BYTES = 150_000
"""100 Gb/s times 12 µs: the network that the published gains are for."""
NSCC = "uet-1.0-nscc"
"""The API's name of the algorithm."""
U32 = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class PathTraits:
    """The way to a peer and back as congestion control sees it. `base_rtt_ns` is the peer's, `network_rtt_ns` is
    the longest of the fabric, `rate_bps` the sum of the NIC's ports, `jitter_ns` how late a process may be."""

    base_rtt_ns: int
    network_rtt_ns: int
    rate_bps: int
    mtu_bytes: int
    jitter_ns: int = 0
    trimming: bool = True
    losses_shrink: bool = False
    """Whether a packet that is inferred lost takes its bytes off the window where switches trim."""
    sharers: int = 1
    """Queue pairs that begin to send over the same line at once, as the program expects (`endpoint.mrc.hint`)."""

    @property
    def network_bdp_bytes(self) -> int:
        """The longest path's."""
        return self.bdp_bytes(self.network_rtt_ns)

    @property
    def peer_bdp_bytes(self) -> int:
        """This peer's; where processes are late, their lateness keeps bytes in flight as well."""
        return self.bdp_bytes(min(self.base_rtt_ns + self.jitter_ns, max(self.base_rtt_ns, self.network_rtt_ns)))

    def bdp_bytes(self, rtt_ns: int) -> int:
        """The bandwidth-delay product of a round trip, at least two packets."""
        return max(self.rate_bps * rtt_ns // 8_000_000_000, 2 * self.mtu_bytes)


@dataclass(frozen=True, slots=True)
class NsccConfig:
    """The thirteen parameters by the API's names; None: by the rule of `resolved`. Bytes, ns and plain factors."""

    disable_qa: bool | None = None
    """No quick adapt."""
    adjust_bytes_threshold: int | None = None
    """Increases are applied after this many acknowledged bytes."""
    adjust_period_threshold: int | None = None
    """ns; or after this long, and then with `eta`."""
    base_rtt: int | None = None
    """ns; None: the peer's, and the fabric's longest for the sizes and times that follow from it."""
    eta: float | None = None
    """Bytes added once per period, independent of signals."""
    fi: float | None = None
    """Fair increase: bytes per window of acknowledged bytes."""
    fi_scale: float | None = None
    """Fast increase: bytes per acknowledged byte."""
    gamma: float | None = None
    """How much of the excess of the average delay a multiplicative decrease takes off."""
    max_md_jump: float | None = None
    """A multiplicative decrease leaves at least this share."""
    max_cwnd: int | None = None
    """Bytes; the largest window and the first. None: 1.5 bandwidth-delay products to the peer."""
    qa_gate: int | None = None
    """Quick adapt only if less than the largest window shifted right by this many bits has arrived."""
    qa_threshold: int | None = None
    """ns of delay that trigger quick adapt; with trims none does, unless it is set."""
    target_delay: int | None = None
    """ns of queueing delay that are aimed at."""

    def resolved(self, path: PathTraits) -> NsccParameters:
        """Every parameter with a value, but for the largest window, which follows the peer's round trip.

        Sizes follow from the network's bandwidth-delay product, as the reference's do: with a = BDP / 150,000 bytes,
        eta = 0.15·MSS·a, fi = 5·MSS·a and fi_scale = 0.25·a. Times are shares of the network's base round trip where
        the reference has them of 12 µs. (Facts of uet-htsim's `initNsccParams` and of UEC's NSCC chapter.)
        """
        rtt_ns = self.base_rtt if self.base_rtt is not None else path.network_rtt_ns
        scale = path.bdp_bytes(rtt_ns) / REFERENCE_BDP_BYTES
        target_ns = self.target_delay
        if target_ns is None:
            target_ns = rtt_ns * 3 // 4 if path.trimming else rtt_ns
        defaults: dict[str, Any] = {
            "disable_qa": False,
            "adjust_bytes_threshold": 8 * path.mtu_bytes,
            "adjust_period_threshold": rtt_ns,
            "base_rtt": rtt_ns,
            "eta": 0.15 * path.mtu_bytes * scale,
            "fi": 5.0 * path.mtu_bytes * scale,
            "fi_scale": 0.25 * scale,
            "gamma": 0.8,
            "max_md_jump": 0.5,
            "qa_gate": 3,
            # With trims it is to have no effect (UEC's NSCC chapter): a trim says the same.
            # Where processes are scheduled late, that lateness must not look like a queue that is far too long.
            "qa_threshold": U32 if path.trimming else 4 * target_ns + path.jitter_ns,
            "target_delay": target_ns,
        }
        chosen = {name: getattr(self, name) for name in defaults}
        return NsccParameters(**{name: defaults[name] if value is None else value for name, value in chosen.items()})


@dataclass(frozen=True, slots=True)
class NsccParameters:
    """An `NsccConfig` with nothing left open."""

    disable_qa: bool
    adjust_bytes_threshold: int
    adjust_period_threshold: int
    base_rtt: int
    eta: float
    fi: float
    fi_scale: float
    gamma: float
    max_md_jump: float
    qa_gate: int
    qa_threshold: int
    target_delay: int


RANGES: dict[str, tuple[type, float, float]] = {
    "disable_qa": (bool, 0, 1),
    "adjust_bytes_threshold": (int, 1, U32),
    "adjust_period_threshold": (int, 1, U32),
    "base_rtt": (int, 1, U32),
    "eta": (float, 0.0, 1e9),
    "fi": (float, 0.0, 1e9),
    "fi_scale": (float, 0.0, 1e3),
    "gamma": (float, 0.0, 1.0),
    "max_md_jump": (float, 0.0, 1.0),
    "max_cwnd": (int, 1, U32),
    "qa_gate": (int, 0, 31),
    "qa_threshold": (int, 0, U32),
    "target_delay": (int, 1, U32),
}
"""Type and range of each parameter; the integers are the API's `uint32_t` and `uint8_t`."""


NSCC_PARAMETERS = tuple(Parameter(name, kind, None, low, high) for name, (kind, low, high) in RANGES.items())


def make_config(values: Mapping[str, Any]) -> NsccConfig:
    """A configuration of these parameters. Raises `ConfigError` for an unknown name or a value out of range."""
    for name, value in values.items():
        if name not in RANGES:
            raise ConfigError(f"NSCC has no parameter {name!r}; valid: {', '.join(RANGES)}")
        kind, low, high = RANGES[name]
        right = type(value) is kind or (kind is float and type(value) is int)
        if not right:
            words = {bool: "true or false", int: "an integer", float: "a number"}[kind]
            raise ConfigError(f"NSCC's {name} is {value!r}; it must be {words}")
        if not low <= value <= high:
            raise ConfigError(f"NSCC's {name} is {value}; it must be from {low} to {high}")
    return NsccConfig(**values)


@dataclass(frozen=True, slots=True)
class CcProfile:
    """`algorithm` is a name of `endpoint.mrc.algorithms.CONGESTIONS`; `values` are those of its parameters."""

    algorithm: str
    values: Values = field(default_factory=dict)

    @property
    def config(self) -> NsccConfig:
        """NSCC's parameters; those that another algorithm has none of are open."""
        return make_config({name: value for name, value in self.values.items() if name in RANGES})
