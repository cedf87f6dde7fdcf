"""The congestion-control profiles of a NIC, by their numbers."""

from collections.abc import Mapping
from typing import Any

from endpoint.mrc.algorithms import find
from endpoint.mrc.congestion.cc_profile import NSCC, CcProfile, make_config
from endpoint.mrc.parameter import Values, checked
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError

PROFILES_MAX = 256


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
        values = checked_profile(name, config)
        if profile_id not in self._profiles and len(self._profiles) >= PROFILES_MAX:
            raise ConfigError(f"the NIC has {PROFILES_MAX} congestion-control profiles; replace one of them")
        self._profiles[profile_id] = CcProfile(name, values)

    def find(self, profile_id: int) -> CcProfile:
        """Raises `VerbError` for a profile that does not exist."""
        profile = self._profiles.get(profile_id)
        if profile is None:
            known = ", ".join(map(str, sorted(self._profiles)))
            raise VerbError(f"there is no congestion-control profile {profile_id}; present: {known}")
        return profile


def checked_profile(name: str, given: Values) -> Values:
    """The values of an algorithm's parameters. Raises `ConfigError` for what it has not or cannot take."""
    kind = find("congestion", name)
    if name in ("nscc", "fixed_window"):  # by the API's words; without congestion control its parameters say nothing
        make_config(given)
        return dict(given)
    return checked("congestion", name, kind.parameters, given)
