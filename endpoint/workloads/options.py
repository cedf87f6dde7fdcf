"""Options of a workload: a frozen dataclass of defaults, filled from JSON, with complaints that name the choices."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from common.fields import Fields


class WorkloadError(ValueError):
    """A workload cannot be made as asked; the message names the option, the rule and the valid choices."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every workload. Contents and choices follow from `seed`, the same on all ranks.

    The time between a program and its NIC, once per message and in no frame's way: the NIC has a write `post_ns`
    after the program posts it (doorbell, fetch), and the program has a completion `completion_ns` after the NIC.
    """

    qps: int = 1
    seed: int = 1
    post_ns: int = 0
    completion_ns: int = 0

    def check(self, ranks: int) -> None:
        """Raise WorkloadError when the options do not go together or with the number of ranks."""
        require("qps", self.qps, 1, 64)
        require("seed", self.seed, 0, (1 << 64) - 1)
        require("post_ns", self.post_ns, 0, 1 << 40)
        require("completion_ns", self.completion_ns, 0, 1 << 40)


T = TypeVar("T", bound=Options)


def parse(kind: str, options: type[T], data: Mapping[str, Any], ranks: int) -> T:
    """Options of a kind from JSON. Raises WorkloadError for a name, type or value that cannot be."""
    known = defaults(options)
    given = Fields(kind, data, WorkloadError, known)
    for name, default in known.items():
        if name in data:
            given.like(name, default)
    parsed = options(**data)
    try:
        parsed.check(ranks)
    except WorkloadError as error:
        raise WorkloadError(f"{kind}: {error}") from error
    return parsed


def defaults(options: type[Options]) -> dict[str, Any]:
    """Every option with its default."""
    return asdict(options())


def require(name: str, value: int | float, low: int | float, high: int | float) -> None:
    """Raise WorkloadError for a value out of range."""
    if not low <= value <= high:
        raise WorkloadError(f"{name} is {value}; it must be from {low} to {high}")
