"""Variants of a sweep: each is the options of one `./lab run` without its seed."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from common.quoting import command
from running import options


@dataclass(frozen=True, slots=True)
class Variant:
    """One point of the product. `plan` "" is the scenario's own; `sets` and `settings` are NAME → value, in words.

    `others` are options that all variants share, by their names (`running/options.py`).
    """

    scenario: str
    transport: str = "mrc"
    plan: str = ""
    sets: tuple[tuple[str, str], ...] = ()  # of the plan
    settings: tuple[tuple[str, str], ...] = ()  # of the transport
    others: tuple[tuple[str, Any], ...] = ()

    @property
    def asked(self) -> dict[str, Any]:
        """The options of `./lab run`, but for the seed."""
        return {
            "scenario": self.scenario,
            "transport": self.transport,
            **({"plan": self.plan} if self.plan else {}),
            "set": [f"{name}={value}" for name, value in self.sets],
            "setting": [f"{name}={value}" for name, value in self.settings],
            **dict(self.others),
        }

    @property
    def arguments(self) -> list[str]:
        """The words of `./lab run` that make a run of this variant, but for the seed: for people."""
        return [self.scenario, *command_words({key: value for key, value in self.asked.items() if key != "scenario"})]

    def command(self, seed: int) -> str:
        """The command that repeats one run of this variant, with its report."""
        return command("run", *self.arguments, "--seed", seed)

    @property
    def axes(self) -> Mapping[str, str]:
        """Everything by which two variants may differ, by name."""
        return {
            "scenario": self.scenario,
            "transport": self.transport,
            "plan": self.plan,
            **{f"set {name}": value for name, value in self.sets},
            **{f"setting {name}": value for name, value in self.settings},
        }

    @property
    def options(self) -> str:
        """The options that all variants share, as one text."""
        return shlex.join(command_words(dict(self.others)))

    @property
    def title(self) -> str:
        """For tables: the scenario, the transport and what else was chosen."""
        parts = [Path(self.scenario).stem, self.transport, *([self.plan] if self.plan else [])]
        return " ".join([*parts, *(f"{name}={value}" for name, value in (*self.sets, *self.settings))])


def command_words(chosen: Mapping[str, Any]) -> list[str]:
    """Options as words of a command line."""
    words: list[str] = []
    for name, value in chosen.items():
        flag = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list | tuple) else [value]:
            shown = options.NEVER if item is None else str(item).removesuffix(".0")
            words += [flag] if item is True else [flag, shown]
    return words


def variants(
    scenarios: Sequence[str],
    transports: Sequence[str],
    plans: Sequence[str],
    sets: Sequence[str],
    settings: Sequence[str],
    others: Mapping[str, Any] = MappingProxyType({}),
) -> list[Variant]:
    """The product of all axes, in the order of the words. A set is NAME=VALUE,VALUE…: an axis of its own.

    ValueError for a word that is none, and for an axis that is given twice or names one value twice.
    """
    for name, values in (("scenario", scenarios), ("transport", transports), ("plan", plans)):
        _once(name, values)
    own_sets, own_settings = list(_axes("--set", sets)), list(_axes("--setting", settings))
    return [
        Variant(scenario, transport, plan, tuple(keys), tuple(names), tuple(others.items()))
        for scenario in scenarios
        for plan in plans or ("",)
        for keys in product(*own_sets)
        for names in product(*own_settings)
        for transport in transports
    ]


def _axes(option: str, texts: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    seen: list[str] = []
    for text in texts:
        name, equals, values = text.partition("=")
        if not name or not equals or not values:
            raise ValueError(f"{option} must be NAME=VALUE,VALUE…, such as trimming.enabled=true,false (got {text!r})")
        seen.append(name)
        choices = split(values)
        _once(f"{option} {name}", choices)
        yield [(name, value) for value in choices]
    _once(option, seen)


def split(text: str) -> list[str]:
    """At its commas, but not at those inside of brackets, braces or quotes: values may be lists or tables."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "[{(") - (character in ")}]")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _once(name: str, values: Sequence[str]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"{name}: {', '.join(twice)} is given more than once")
