"""Congestion control: how many bytes a QP may have in flight. An algorithm is one file and one line below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from endpoint.mrc.congestion.cc_profile import NSCC, CcProfile, NsccConfig, PathTraits, make_config
from endpoint.mrc.congestion.fixed_window import FixedWindow
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError


class Congestion(Protocol):
    """One QP's window. Sizes are payload bytes, delays ns; `now_ns` never goes back."""

    window_bytes: int
    """Bytes that may be in flight now. One packet always may."""

    def __init__(self, path: PathTraits, config: NsccConfig) -> None:
        """`config` holds NSCC's parameters; another algorithm need not look at them."""

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        """`acked_bytes` were newly acknowledged, perhaps none; `marked` is of the packet that caused the SACK, and so
        is `rtt_ns`, None if copies of that packet cannot be told apart."""

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        """A packet of `size` bytes was trimmed, wherever."""

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        """A packet vanished: a path failure where switches trim, else perhaps congestion."""

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        """The retransmission timer fired for so many bytes: nothing was heard for long."""

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: no period of the algorithm has passed meanwhile."""

    def on_penalty(self, penalty: int) -> None:
        """The receiver's penalty, 0 to 127 (`endpoint.mrc.paths.penalty`)."""


PROFILES_MAX = 256
ALGORITHMS: dict[str, type[Congestion]] = {"nscc": Nscc, "fixed_window": FixedWindow}


def find_congestion(name: str) -> type[Congestion]:
    """The algorithm of that name. Raises `ConfigError`."""
    if name not in ALGORITHMS:
        raise ConfigError(f"there is no congestion control {name!r}; valid: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


class CcProfiles:
    """The congestion-control profiles of a NIC by their ids (OCP MRC API: `mrc_ctl_modify_cc_profile`)."""

    def __init__(self, default: CcProfile) -> None:
        self._profiles = {0: default}

    def modify(self, profile_id: int, algorithm: str | None, config: Mapping[str, Any]) -> None:
        """Make or replace a profile for QPs to come; algorithm None switches congestion control off.

        Raises `ConfigError` for an id, algorithm or parameter that cannot be.
        """
        if type(profile_id) is not int or not 0 <= profile_id < 1 << 64:
            raise ConfigError(f"a profile's id is {profile_id!r}; it must be an integer of 64 bits")
        name = "fixed_window" if algorithm is None else "nscc" if algorithm == NSCC else algorithm
        find_congestion(name)
        if profile_id not in self._profiles and len(self._profiles) >= PROFILES_MAX:
            raise ConfigError(f"the NIC has {PROFILES_MAX} congestion-control profiles; replace one of them")
        self._profiles[profile_id] = CcProfile(name, make_config(config))

    def find(self, profile_id: int) -> CcProfile:
        """Raises `VerbError` for a profile that nobody has made."""
        found = self._profiles.get(profile_id)
        if found is None:
            known = ", ".join(map(str, sorted(self._profiles)))
            raise VerbError(f"there is no congestion-control profile {profile_id}; present: {known}")
        return found
