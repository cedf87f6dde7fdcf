"""Options of a workload: a frozen dataclass of defaults, filled from JSON, with complaints that name the choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, TypeVar


class WorkloadError(ValueError):
    """A workload cannot be made as asked; the message names the option, the rule and the valid choices."""


@dataclass(frozen=True, slots=True)
class Options:
    """What every workload has. `seed` makes contents and choices; all ranks must be given the same."""

    qps: int = 1
    seed: int = 1

    def check(self, ranks: int) -> None:
        """Raise WorkloadError when the options do not go together or with the number of ranks."""
        require("qps", self.qps, 1, 64)
        require("seed", self.seed, 0, (1 << 64) - 1)


T = TypeVar("T", bound=Options)


def parse(kind: str, options: type[T], data: Mapping[str, Any], ranks: int) -> T:
    """Options of a kind from JSON. Raises WorkloadError for a name, type or value that cannot be."""
    known = {one.name: one for one in fields(options)}
    for name, value in data.items():
        if name not in known:
            raise WorkloadError(f"{kind} has no option {name!r}; its options are {', '.join(known)}")
        default = known[name].default
        if default is MISSING:
            continue
        wanted = type(default)
        if wanted is float and type(value) is int:
            continue
        if type(value) is not wanted and not (wanted is tuple and isinstance(value, list)):
            raise WorkloadError(f"{kind}: {name} is {value!r}; it must be {_NAMES[wanted]}, such as {default!r}")
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


_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "a string", tuple: "a list"}
