"""DCQCN's parameters, in settings from hasty to cautious, as figure 22 of the MRC paper compares them.

The paper does not say which numbers its settings have. Here each has a source:

- Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015), for 40 Gb/s: g = 1/256, alpha and
  rate timers of 55 µs, byte counter of 10 MB, five steps of fast recovery, R_AI = 40 Mb/s, a notification each 50 µs;
- NVIDIA, "DCQCN CC Parameters": dce_tcp_g = 1019 of 1024, that is g = 5/1024;
- assumed: everything called so below.

In these three rates are shares of the line and times are base round trips, of which one represents the 50 µs of a
loaded network there (assumed), so that they behave alike on slowed links. `published` has the constants of the
publication as they are, in time, bytes and bit/s: for links at hardware rates. `scaled` has them for faster links:
times as published, and rates and bytes in proportion to the line, which was 40 Gb/s there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from endpoint.nic.config import ConfigError

REFERENCE_RTT_US = 50


@dataclass(frozen=True, slots=True)
class DcqcnConstants:
    """Constants of one link, in time, bytes and rate; the defaults are Zhu et al.'s, for any link and round trip."""

    alpha_period_ns: int = 55_000
    increase_period_ns: int = 55_000
    increase_bytes: float = 10_000_000
    additive_bps: float = 40_000_000
    hyper_bps: float = 400_000_000
    """R_HAI. Assumed: ten times R_AI."""
    cnp_period_ns: int = 50_000


@dataclass(frozen=True, slots=True)
class DcqcnSetting:
    """The defaults are those of `default`."""

    alpha_gain: float = 1 / 256
    """g (Zhu et al.)."""
    alpha_period_rtts: float = 55 / REFERENCE_RTT_US
    """Without a notification for this long alpha decays (Zhu et al.)."""
    increase_period_rtts: float = 55 / REFERENCE_RTT_US
    """The rate timer (Zhu et al.)."""
    increase_bdps: float = 40.0
    """The byte counter (Zhu et al.: 10 MB, forty times 250,000 bytes)."""
    fast_recovery: int = 5
    """Increases that only halve the distance to the target: F (Zhu et al.)."""
    additive: float = 1 / 250
    """R_AI in lines. Assumed: four times the published 40 Mb/s of 40 Gb/s, with which a flow once cut takes a thousand
    round trips to recover, longer than an experiment."""
    hyper: float = 10 / 250
    """R_HAI in lines. Assumed: ten times R_AI."""
    cnp_period_rtts: float = 50 / REFERENCE_RTT_US
    """Least time between two notifications of one QP, the notification point's part (Zhu et al.)."""
    absolute: DcqcnConstants | None = None
    """Constants that take the place of those above."""
    absolute_line_bps: int = 0
    """The line to which their rates and bytes belong, with which these grow. 0: they are what they are."""

    def at(self, line_bps: int, base_rtt_ns: int, bdp_bytes: int) -> DcqcnConstants:
        """The constants on a link of this rate, round trip and bandwidth-delay product."""
        if (fixed := self.absolute) is not None:
            faster = line_bps / self.absolute_line_bps if self.absolute_line_bps else 1.0
            return replace(
                fixed,
                increase_bytes=fixed.increase_bytes * faster,
                additive_bps=fixed.additive_bps * faster,
                hyper_bps=fixed.hyper_bps * faster,
            )
        return DcqcnConstants(
            max(1, int(self.alpha_period_rtts * base_rtt_ns)),
            max(1, int(self.increase_period_rtts * base_rtt_ns)),
            self.increase_bdps * bdp_bytes,
            self.additive * float(line_bps),
            self.hyper * float(line_bps),
            int(self.cnp_period_rtts * base_rtt_ns),
        )


DEFAULT = DcqcnSetting()
AGGRESSIVE = replace(DEFAULT, additive=1 / 1000, hyper=10 / 1000, cnp_period_rtts=25 / REFERENCE_RTT_US)
"""R_AI as published (Zhu et al.), and a notification twice as often (assumed)."""
MOST_AGGRESSIVE = replace(AGGRESSIVE, alpha_gain=5 / 1024, cnp_period_rtts=12.5 / REFERENCE_RTT_US)
"""With NVIDIA's g, and a notification four times as often (assumed)."""
PUBLISHED = replace(DEFAULT, absolute=DcqcnConstants())
SCALED = replace(PUBLISHED, absolute_line_bps=40_000_000_000)
SETTINGS: Mapping[str, DcqcnSetting] = {
    "default": DEFAULT,
    "aggressive": AGGRESSIVE,
    "most_aggressive": MOST_AGGRESSIVE,
    "published": PUBLISHED,
    "scaled": SCALED,
}


def dcqcn_setting(name: str) -> DcqcnSetting:
    """The setting of that name, such as `published`; `published:alpha_gain=0.01,additive_bps=4e7` changes some of it.

    Only a setting in absolute units can be changed. Raises `ConfigError` with the names that there are.
    """
    base, _, changes = name.partition(":")
    if base not in SETTINGS:
        raise ConfigError(f"dcqcn_setting is {name!r}; valid: {', '.join(SETTINGS)}")
    setting = SETTINGS[base]
    for change in changes.split(",") if changes else ():
        setting = _changed(setting, name, change)
    return setting


def _changed(setting: DcqcnSetting, name: str, change: str) -> DcqcnSetting:
    field, _, text = change.partition("=")
    fixed = setting.absolute
    known = ["alpha_gain", *(each.name for each in fields(DcqcnConstants))]
    if fixed is None or field not in known:
        raise ConfigError(f"dcqcn_setting is {name!r}; `published` and `scaled` can be changed, by {', '.join(known)}")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e15 or (field == "alpha_gain" and value > 1):
        raise ConfigError(f"dcqcn_setting is {name!r}; {field} must be a number above 0, alpha_gain at most 1")
    if field == "alpha_gain":
        return replace(setting, alpha_gain=value)
    return replace(setting, absolute=DcqcnConstants(**{**asdict(fixed), field: max(1, round(value))}))
