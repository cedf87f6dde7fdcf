"""Algorithms from files outside of the project: a setting `my_file.py:Class`.

The settings are selection, congestion, loss and operations.
A class derives from the seam's own (`endpoint.mrc.algorithms`); it is added to the ones there are under the words that
named it, before a transport is made.
"""

import ast
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import plain_file, user_code
from endpoint.mrc.algorithms import OPERATIONS, SEAMS
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.parameter import Parameter
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.seams.guards import USERS, ClassPlace
from endpoint.nic.config import ConfigError

__all__ = ["KINDS", "absolute", "files", "is_plugin"]

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
    resolved = dict(settings)
    for name, value in settings.items():
        if name in KINDS and is_plugin(value):
            path, _, cls = str(value).rpartition(":")
            resolved[name] = f"{os.path.realpath(path)}:{cls}"  # resolve() raises for links in a circle
    return resolved


def files(settings: Mapping[str, Any]) -> list[Path]:
    """The files that these settings name."""
    return [Path(str(v).rpartition(":")[0]) for name, v in settings.items() if name in KINDS and is_plugin(v)]


def add(settings: Mapping[str, Any]) -> None:
    """Load what the settings name. ConfigError with the file, and the line where it broke."""
    for name, value in settings.items():
        if name in KINDS and is_plugin(value):
            places: dict[str, Any] = OPERATIONS if name == "operations" else SEAMS[name]
            plugin, place = load(name, str(value))
            places[str(value)], USERS[plugin] = plugin, place


def load(setting: str, value: str) -> tuple[type[Any], ClassPlace]:
    """The class that a value names, and where it is. Raises `ConfigError` unless it fits the seam."""
    path_text, _, class_name = value.rpartition(":")
    path = Path(path_text)
    module = user_code.load(path, f"plugin_{path.stem}", ConfigError, setting)
    plugin = getattr(module, class_name, None)
    if not inspect.isclass(plugin):
        classes = [
            name for name, item in vars(module).items() if inspect.isclass(item) and item.__module__ == module.__name__
        ]
        raise ConfigError(f"{setting}: {path} has no class {class_name!r}; it has {', '.join(classes) or 'none'}")
    base, method = KINDS[setting]
    place = ClassPlace(str(path), _line(path, class_name))
    where = f"{setting}: {path}:{place.line}: class {class_name}"
    if not issubclass(plugin, base):
        raise ConfigError(f"{where} must derive from {base.__name__} of {base.__module__}")
    shipped = tuple(SEAMS.get(setting, {}).values())
    if getattr(plugin, method) is getattr(base, method) and not issubclass(plugin, shipped):
        raise ConfigError(f"{where} must have a method {method}")
    heeds = getattr(plugin, "heeds_signals", True)
    if setting == "selection" and type(heeds) is not bool:
        raise ConfigError(f"{where}: heeds_signals must be True or False (got {heeds!r})")
    _check_parameters(where, getattr(plugin, "parameters"))  # noqa: B009 — the type checker sees a bare object
    return plugin, place


def _check_parameters(where: str, declared: object) -> None:
    """Raise `ConfigError`, after `where`, for parameters that cannot be declared so."""
    if not isinstance(declared, (tuple, list)) or not all(isinstance(parameter, Parameter) for parameter in declared):
        rule = "parameters must be a tuple of Parameters, such as (Parameter(…),) with its comma"
        raise ConfigError(f"{where}: {rule} (got {declared!r})")
    names: list[object] = []
    for parameter in declared:
        name, kind, default, low, high = parameter[:5]
        this = f"{where}: parameter {name!r}"
        if not (isinstance(name, str) and name.isidentifier()) or name in names:
            raise ConfigError(f"{this} must have a name without spaces and dots, and no other's")
        names.append(name)
        if kind not in (bool, int, float, str):
            raise ConfigError(f"{this} must be of kind bool, int, float or str (got {kind!r})")
        numbers = all(type(bound) in (int, float) for bound in (low, high))
        if kind in (int, float) and not (numbers and low <= high):
            raise ConfigError(f"{this} must have a range of two numbers, the lower first (got {low!r} and {high!r})")
        if default is not None and not parameter.allows(default):
            raise ConfigError(f"{where}: the default of {name!r} must be {parameter.range_words} (got {default!r})")


def _line(path: Path, class_name: str) -> int:
    """The line where the file defines the class; 1 where the class came in another way."""
    nodes = ast.walk(ast.parse(plain_file.read_up_to(path)))  # bytes: the file may declare another encoding than UTF-8
    return next((node.lineno for node in nodes if isinstance(node, ast.ClassDef) and node.name == class_name), 1)
