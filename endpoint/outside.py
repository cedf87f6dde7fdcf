"""Path selections and congestion controls from files outside of the project: a setting `my_file.py:Class`.

A class is what `endpoint.mrc.paths.selection.Selection` or `endpoint.mrc.congestion.congestion.Congestion` says; it
is added to the ones there are under the words that named it, before a transport is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import user_code
from endpoint.mrc.congestion.congestion import ALGORITHMS
from endpoint.mrc.paths.selection import SELECTIONS
from endpoint.nic.config import ConfigError

KINDS: Mapping[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "selection": (SELECTIONS, ("heeds_signals", "next")),
    "congestion": (ALGORITHMS, ("on_ack", "on_trim", "on_loss", "on_timeout", "host_was_late", "on_penalty")),
}
_SEAMS = {"selection": "endpoint/mrc/paths/selection.py", "congestion": "endpoint/mrc/congestion/congestion.py"}
"""By setting: those there are, and what a class must have."""


def is_outside(value: object) -> bool:
    """Whether a setting's value names a class in a file."""
    return isinstance(value, str) and ".py:" in value


def absolute(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with whole paths: agents run in another folder."""
    found = dict(settings)
    for name, value in settings.items():
        if name in KINDS and is_outside(value):
            path, _, cls = str(value).rpartition(":")
            found[name] = f"{Path(path).resolve()}:{cls}"
    return found


def files(settings: Mapping[str, Any]) -> list[Path]:
    """The files that these settings name."""
    return [Path(str(v).rpartition(":")[0]) for name, v in settings.items() if name in KINDS and is_outside(v)]


def add(settings: Mapping[str, Any]) -> None:
    """Load what the settings name. ConfigError with the file, and the line where it broke."""
    for name, value in settings.items():
        if name in KINDS and is_outside(value):
            known, wanted = KINDS[name]
            known[str(value)] = load(name, str(value), wanted)


def load(setting: str, value: str, wanted: tuple[str, ...]) -> type[Any]:
    """The class that a value names."""
    path_text, _, class_name = value.rpartition(":")
    path = Path(path_text)
    module = user_code.load(path, f"outside_{path.stem}", ConfigError, setting)
    found = getattr(module, class_name, None)
    if not inspect.isclass(found):
        classes = [name for name, item in vars(module).items() if inspect.isclass(item)]
        raise ConfigError(f"{setting}: {path} has no class {class_name!r}; it has {', '.join(classes) or 'none'}")
    missing = [name for name in wanted if not hasattr(found, name)]
    if missing:
        raise ConfigError(f"{setting}: {path}: class {class_name} lacks {', '.join(missing)} ({_SEAMS[setting]})")
    return found
