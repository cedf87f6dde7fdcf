"""The algorithms that a setting may name, for each seam; and making them for a queue pair or a NIC.

MRC's own, its control groups, and those that packages add by entry points (`packages/algorithms`).

A class from a file of the user's (`endpoint.plugins`) is behind a guard: it is asked through Python, and its errors
name the file, the line and the rule.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from common.door import added, of_packages, thing
from endpoint.mrc.congestion.cc_profile import CcProfile, PathTraits
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.congestion.fixed_window import FixedWindow
from endpoint.mrc.congestion.granter import CreditGranter
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.parameter import checked
from endpoint.mrc.paths.ev_set import EvSet
from endpoint.mrc.paths.select_mrc import MrcSelection
from endpoint.mrc.paths.select_oblivious import ObliviousSelection
from endpoint.mrc.paths.select_single_path import SinglePathSelection
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.seams.guards import (
    USERS,
    GuardedCongestion,
    GuardedGranter,
    GuardedLossDetection,
    GuardedOperations,
    GuardedSelection,
)
from endpoint.nic.config import ConfigError, Settings

GROUP = "mrclab.algorithms"
"""Entry points of packages: `SETTING.NAME = "MODULE:CLASS"`."""
SELECTIONS: dict[str, type[Selection]] = {
    "mrc": MrcSelection,
    "oblivious": ObliviousSelection,
    "single_path": SinglePathSelection,
}
CONGESTIONS: dict[str, type[Congestion]] = {"nscc": Nscc, "fixed_window": FixedWindow}
LOSSES: dict[str, type[LossDetection]] = {"reorder": ReorderRule}
OPERATIONS: dict[str, type[EndpointOperations]] = {"mrc": EndpointOperations}
SEAMS: dict[str, dict[str, Any]] = {"selection": SELECTIONS, "congestion": CONGESTIONS, "loss": LOSSES}
"""By setting: MRC's own, and those of packages and of users that were asked for."""


WORDS = {
    "selection": "path selection",
    "congestion": "congestion control",
    "loss": "loss rule",
    "operations": "rule for port status updates",
}


def find(setting: str, name: str) -> Any:
    """The algorithm of that name. Raises `ConfigError`."""
    there = SEAMS.get(setting, OPERATIONS)
    if name not in there:
        _take(setting, of_packages(GROUP))
    if name not in there and name not in algorithms_of(setting):
        what = f"there is no {WORDS[setting]} {name!r}"
        raise ConfigError(f"{what}; valid: {', '.join(there)}, or a class of a file, FILE.py:CLASS")
    return there[name]


def algorithms_of(setting: str) -> dict[str, Any]:
    """All algorithms of a setting by name, with those of packages."""
    _take(setting, added(GROUP))
    return SEAMS.get(setting, OPERATIONS)


def _take(setting: str, entries: Mapping[str, str]) -> None:
    """Put the algorithms of a setting that packages add among the others."""
    there = SEAMS.get(setting, OPERATIONS)
    for entry, place in entries.items():
        seam, _, name = entry.partition(".")
        if seam == setting and name not in there:
            there[name] = thing(place)


class Chosen:
    """The algorithms that the settings of a NIC choose, with the checked values of their parameters.

    Raises `ConfigError` for a name, a parameter or a value that cannot be.
    """

    def __init__(self, settings: Settings) -> None:
        self._selection = settings.selection
        self._loss = settings.loss
        rule = find("operations", settings.operations)
        self.operations: Callable[..., EndpointOperations] = (
            (lambda *given: GuardedOperations(rule, *given)) if rule in USERS else rule
        )
        """Makes the rule for port status updates of a NIC."""
        self._patience_ns = settings.loss_patience_ns
        self._values: dict[str, dict[str, Any]] = {}
        given = settings.parameters or {}
        classes = {seam: find(seam, getattr(settings, seam)) for seam in SEAMS}
        for word in given:
            if word.partition(".")[0] not in classes:
                raise ConfigError(f"there is no setting {word!r}; parameters belong to {', '.join(classes)}")
        for seam, kind in classes.items():
            own = {word.partition(".")[2]: value for word, value in given.items() if word.startswith(f"{seam}.")}
            self._values[seam] = checked(seam, getattr(settings, seam), kind.parameters, own)
        values = self._values["congestion"]
        self.cc_profile = CcProfile(settings.congestion, {**(settings.nscc or {}), **values})
        self._shared: dict[str, Any] = {}

    def selection(self, name: str, evs: EvSet, rng: Random) -> Selection:
        """The path selection of a QP; parameters count for the one that the settings name."""
        kind = find("selection", name)
        values = (
            self._values["selection"] if name == self._selection else checked("selection", name, kind.parameters, {})
        )
        return GuardedSelection(kind, evs, rng, values) if kind in USERS else kind(evs, rng, values)

    def congestion(self, profile: CcProfile, path: PathTraits) -> Congestion:
        """The congestion control of a QP by its profile."""
        kind: type[Congestion] = find("congestion", profile.algorithm)
        if kind in USERS:
            return GuardedCongestion(kind, path, profile.values, self._shared)
        return kind.make(path, profile.values, self._shared)

    def granter(self, path: PathTraits) -> CreditGranter | None:
        """The receiving side of the congestion control that the settings name; None: it has none."""
        kind: type[Congestion] = find("congestion", self.cc_profile.algorithm)
        if kind in USERS:
            guarded = GuardedGranter(kind, path, self.cc_profile.values)
            return guarded if guarded.grants_anything else None
        return kind.receiver(path, self.cc_profile.values)

    def loss(self, base_rtt_ns: int, jitter_ns: int) -> LossDetection:
        """The loss rule of a QP."""
        kind, values = find("loss", self._loss), self._values["loss"]
        if kind in USERS:
            rule: LossDetection = GuardedLossDetection(kind, base_rtt_ns, jitter_ns, values)
        else:
            rule = kind(base_rtt_ns, jitter_ns, values)
        rule.be_patient(self._patience_ns)
        return rule
