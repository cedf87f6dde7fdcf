"""DCQCN's parameters, in three settings from hasty to cautious: what figure 22 of the MRC paper compares.

The paper does not say which numbers its settings have. Here each has a source:

- Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015), for 40 Gb/s: g = 1/256, alpha and
  rate timers of 55 µs, byte counter of 10 MB, five steps of fast recovery, R_AI = 40 Mb/s, a notification each 50 µs;
- NVIDIA, "DCQCN CC Parameters": dce_tcp_g = 1019 of 1024, that is g = 5/1024;
- assumed: everything called so below.

Rates are shares of the line and times are base round trips, of which one stands for the 50 µs of a loaded network there
(assumed; an idle fabric's 12 µs would make the algorithm four times slower than the experiments here are long).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from endpoint.nic.config import ConfigError

REFERENCE_RTT_US = 50


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


DEFAULT = DcqcnSetting()
AGGRESSIVE = replace(DEFAULT, additive=1 / 1000, hyper=10 / 1000, cnp_period_rtts=25 / REFERENCE_RTT_US)
"""R_AI as published (Zhu et al.), and a notification twice as often (assumed)."""
MOST_AGGRESSIVE = replace(AGGRESSIVE, alpha_gain=5 / 1024, cnp_period_rtts=12.5 / REFERENCE_RTT_US)
"""With NVIDIA's g, and a notification four times as often (assumed)."""
SETTINGS: Mapping[str, DcqcnSetting] = {
    "default": DEFAULT,
    "aggressive": AGGRESSIVE,
    "most_aggressive": MOST_AGGRESSIVE,
}


def dcqcn_setting(name: str) -> DcqcnSetting:
    """The setting of that name. Raises `ConfigError` with the names that there are."""
    if name not in SETTINGS:
        raise ConfigError(f"dcqcn_setting is {name!r}; valid: {', '.join(SETTINGS)}")
    return SETTINGS[name]
