"""Parameters that an algorithm declares: names, types, ranges, units and defaults, checked like any other setting."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from endpoint.nic.config import ConfigError

Value = Any
"""A bool, int, float or str. Any: compiled code would make a float of every int in a union with float."""
Values = Mapping[str, Value]


class Parameter(NamedTuple):
    """`kind` is bool, int, float or str. A number lies between `low` and `high`, both included; a text is one of
    `choices`. A `default` of None follows from the NIC. `what` says in a few words what the parameter does."""

    name: str
    kind: type
    default: Value | None
    low: float = 0.0
    high: float = float("inf")
    unit: str = ""
    what: str = ""
    choices: tuple[str, ...] = ()

    @property
    def range_words(self) -> str:
        """The values that the parameter may have, for tables and messages."""
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return f"one of {', '.join(self.choices)}" if self.choices else "a text"
        kind = "an integer" if self.kind is int else "a number"
        unit = f" {self.unit}" if self.unit else ""
        return f"{kind} from {self.low:g} to {self.high:g}{unit}"

    def allows(self, value: object) -> bool:
        """Whether this value has the type and lies in the range."""
        if self.kind is bool:
            return isinstance(value, bool)
        if self.kind is str:
            return isinstance(value, str) and (not self.choices or value in self.choices)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return (isinstance(value, int) or self.kind is float) and self.low <= value <= self.high


def checked(setting: str, name: str, parameters: Sequence[Parameter], given: Values) -> dict[str, Value]:
    """The parameters of the algorithm `name` with their values or defaults; `setting` names the seam.

    Raises `ConfigError` for a parameter that the algorithm does not declare, and for a wrong type or range.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for word, value in given.items():
        if word not in known:
            valid = ", ".join(known) or "none"
            raise ConfigError(f"{setting}.{word}: {setting} {name} has no such parameter; valid: {valid}")
        if not known[word].allows(value):
            raise ConfigError(f"{setting}.{word} must be {known[word].range_words} (got {value!r})")
    chosen = {word: given.get(word, parameter.default) for word, parameter in known.items()}
    return {word: value for word, value in chosen.items() if value is not None}
