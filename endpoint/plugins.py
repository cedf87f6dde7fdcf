"""Algorithms from files outside of the project: a setting `my_file.py:Class`.

The settings are selection, congestion, loss and operations.
A class derives from the seam's own (`endpoint.mrc.algorithms`); it is added to the ones there are under the words that
named it, before a transport is made.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from common import user_code
from endpoint.mrc.algorithms import OPERATIONS, SEAMS
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.parameter import Parameter
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.seams.guards import USERS
from endpoint.nic.config import ConfigError

KINDS: Mapping[str, tuple[type[Any], str]] = {
    "selection": (Selection, "next"),
    "congestion": (Congestion, "on_ack"),
    "loss": (LossDetection, "overdue"),
    "operations": (EndpointOperations, "announce"),
}
"""By setting: the class to derive from, and the method that every algorithm has to have."""


def is_plugin(value: object) -> bool:
    """Whether a setting's value names a class in a file."""
    return isinstance(value, str) and ".py:" in value


def absolute(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with whole paths: agents run in another folder."""
    found = dict(settings)
    for name, value in settings.items():
        if name in KINDS and is_plugin(value):
            path, _, cls = str(value).rpartition(":")
            found[name] = f"{Path(path).resolve()}:{cls}"
    return found


def files(settings: Mapping[str, Any]) -> list[Path]:
    """The files that these settings name."""
    return [Path(str(v).rpartition(":")[0]) for name, v in settings.items() if name in KINDS and is_plugin(v)]


def add(settings: Mapping[str, Any]) -> None:
    """Load what the settings name. ConfigError with the file, and the line where it broke."""
    for name, value in settings.items():
        if name in KINDS and is_plugin(value):
            places: dict[str, Any] = OPERATIONS if name == "operations" else SEAMS[name]
            found = places[str(value)] = load(name, str(value))
            USERS[found] = partial(user_code.told, path=Path(str(value).rpartition(":")[0]))


def load(setting: str, value: str) -> type[Any]:
    """The class that a value names. Raises `ConfigError` unless it fits the seam."""
    path_text, _, class_name = value.rpartition(":")
    path = Path(path_text)
    module = user_code.load(path, f"plugin_{path.stem}", ConfigError, setting)
    found = getattr(module, class_name, None)
    if not inspect.isclass(found):
        classes = [
            name for name, item in vars(module).items() if inspect.isclass(item) and item.__module__ == module.__name__
        ]
        raise ConfigError(f"{setting}: {path} has no class {class_name!r}; it has {', '.join(classes) or 'none'}")
    base, method = KINDS[setting]
    where = f"{setting}: {path}:{_line(path, class_name)}: class {class_name}"
    if not issubclass(found, base):
        raise ConfigError(f"{where} must derive from {base.__name__} of {base.__module__}")
    if getattr(found, method) is getattr(base, method):
        raise ConfigError(f"{where} must have a method {method}")
    declared: tuple[Any, ...] = getattr(found, "parameters")  # noqa: B009 — the type checker sees a bare object
    for parameter in declared:
        if not isinstance(parameter, Parameter) or not (
            parameter.default is None or parameter.allows(parameter.default)
        ):
            raise ConfigError(
                f"{where}: parameters must be a tuple of Parameters whose defaults are allowed (got {parameter!r})"
            )
    return found


def _line(path: Path, class_name: str) -> int:
    """The line where the file defines the class; 1 where the class came in another way."""
    found = ast.walk(ast.parse(path.read_text()))
    return next((node.lineno for node in found if isinstance(node, ast.ClassDef) and node.name == class_name), 1)
