"""The contestants: what `--algorithms` names, as settings of the transport."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from common import user_code
from endpoint import plugins
from endpoint.mrc import SEAMS, algorithms_of
from running.transport_choice import transport
from studies.sweeping.variant import Variant, split

OPTION = "--algorithms"
TRANSPORT = "transport"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """`name` is what the user wrote, without folders unless two would have one name; `settings` are those of
    `./lab run --setting`, and `transport` is that of `--transport`, whose switches may be others."""

    name: str
    settings: tuple[tuple[str, str], ...]
    transport: str = "mrc"


def parse(text: str) -> list[Algorithm]:
    """The algorithms of a list such as `mrc,reps+congestion=swift,my.py:Mine`.

    ValueError names the word that is wrong and the valid choices. A user's file is loaded: its code runs.
    """
    words = [word.strip() for word in split(text)]
    if len(words) < 2:
        raise ValueError(f"{OPTION} must name at least two algorithms with commas between them (got {text!r})")
    if "" in words:
        raise ValueError(
            f"{OPTION} must have a name between its commas (number {words.index('') + 1} of {text!r} is empty)"
        )
    parts = [_settings(word) for word in words]
    transports = [dict(own).get(TRANSPORT, "mrc") for own in parts]
    settings = [tuple(part for part in own if part[0] != TRANSPORT) for own in parts]
    algorithms = [Algorithm(*one) for one in zip(_names(words, settings), settings, transports, strict=True)]
    for first, other in combinations(range(len(algorithms)), 2):
        one, two = (plugins.absolute({**dict(settings[at]), TRANSPORT: transports[at]}) for at in (first, other))
        if one == two or algorithms[first].name == algorithms[other].name:
            raise ValueError(f"{OPTION} must name different algorithms (got {words[first]} and {words[other]})")
    return algorithms


def variants(
    algorithms: Sequence[Algorithm], scenarios: Sequence[str], plan: str, others: Mapping[str, Any]
) -> list[list[Variant]]:
    """For each scenario one variant per algorithm. ValueError for a scenario that is named twice, or not at all."""
    if not scenarios or not all(scenarios) or len(set(scenarios)) < len(scenarios):
        raise ValueError(
            f"--scenario must name different scenarios with commas between them (got {','.join(scenarios)!r})"
        )
    return [
        [Variant(scenario, own.transport, plan, (), own.settings, tuple(others.items())) for own in algorithms]
        for scenario in scenarios
    ]


def _settings(word: str) -> tuple[tuple[str, str], ...]:
    settings: dict[str, str] = {}
    for part in word.split("+"):
        name, equals, value = part.partition("=")
        if name == TRANSPORT and transport(value).agent != "mrc":
            raise ValueError(f"{OPTION}: the transport in {word!r} must be a form of MRC")
        if not equals or name.partition(".")[0] not in (*SEAMS, TRANSPORT):
            name, value = (_seam(part) if plugins.is_plugin(part) else "selection"), part
        if name in settings:
            raise ValueError(f"{OPTION}: {word!r} must choose {name} once")
        shipped = _shipped(name) if name in SEAMS else []
        if name in SEAMS and not plugins.is_plugin(value) and value not in shipped:
            raise ValueError(f"{OPTION}: there is no {name} {value!r} (in {word!r}): {choices()}")
        settings[name] = value
    return tuple(settings.items())


def choices() -> str:
    """The words that `--algorithms` takes."""
    shipped = {seam: ", ".join(_shipped(seam)) for seam in SEAMS}
    return (
        f"valid are {shipped['selection']}; congestion= with {shipped['congestion']}; loss= with {shipped['loss']};"
        " transport= with a form of MRC, such as one with other switches;"
        " a class of yours as FILE.py:CLASS (a path with + or , cannot be named);"
        " and several of these with + between them"
    )


def _shipped(seam: str) -> list[str]:
    """The names of a seam that are no files of the user's."""
    return [name for name in algorithms_of(seam) if not plugins.is_plugin(name)]


def _seam(value: str) -> str:
    """The setting that the class in a user's file is for."""
    path_text, _, class_name = value.rpartition(":")
    path = Path(path_text)
    module = user_code.load(path, f"plugin_{path.stem}", ValueError, OPTION)
    plugin = getattr(module, class_name, None)
    seams = [seam for seam, (base, _) in plugins.KINDS.items() if inspect.isclass(plugin) and issubclass(plugin, base)]
    if len(seams) != 1:
        bases = ", ".join(base.__name__ for base, _ in plugins.KINDS.values())
        raise ValueError(f"{OPTION}: {path} must have a class {class_name!r} that derives from one of {bases}")
    return seams[0]


def _names(words: Sequence[str], settings: Sequence[Sequence[tuple[str, str]]]) -> list[str]:
    """The words without folders; with them where two words differ in folders and perhaps in parameters."""
    alike: dict[str, set[str]] = {}
    bare = [_short("+".join(part for part in word.split("+") if not _is_parameter(part))) for word in words]
    for name, own in zip(bare, settings, strict=True):
        chosen = {seam: value for seam, value in own if seam in SEAMS}
        alike.setdefault(name, set()).add(repr(sorted(plugins.absolute(chosen).items())))
    return [word if len(alike[name]) > 1 else _short(word) for word, name in zip(words, bare, strict=True)]


def _is_parameter(part: str) -> bool:
    """Whether a part of a word is such as `congestion.gain=0.1`."""
    name, equals, _ = part.partition("=")
    seam, dot, _ = name.partition(".")
    return bool(equals and dot) and seam in SEAMS


def _short(word: str) -> str:
    """Without the folders of files."""
    parts = []
    for part in word.split("+"):
        before, equals, value = part.rpartition("=") if plugins.is_plugin(part) else ("", "", part)
        parts.append(before + equals + (Path(value).name if plugins.is_plugin(value) else value))
    return "+".join(parts)
