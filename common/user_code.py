"""Python files of a user, loaded as modules; an error in them is reported with file and line."""

import ast
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from common import plain_file

__all__ = ["RAISED", "imported", "load", "located_error"]


def load(path: Path, name: str, refusal: type[ValueError], setting: str = "") -> ModuleType:
    """The module that a file holds. Raises `refusal`, after the name of the setting that named the file."""
    before = f"{setting}: " if setting else ""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise refusal(f"{before}{path}: {'this must be a Python file' if path.exists() else 'no such file'}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except RAISED as error:
        raise refusal(before + located_error(error, path)) from error
    return module


RAISED = (Exception, SystemExit, GeneratorExit)
"""Errors that a user's code may raise. `sys.exit()` in a scenario file must not end the lab with the status of a
verdict; only Ctrl-C passes through."""


def located_error(error: BaseException, path: Path) -> str:
    """An exception of a user's code, after its file and the line that raised it, where that is in the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.lineno is not None:
        lines = [error.lineno]
    return f"{path}{f':{lines[-1]}' if lines else ''}: {type(error).__name__}: {error}"


def imported(path: Path, known: Sequence[Path] = (), folders: Sequence[Path] = ()) -> list[Path]:
    """The files of the modules that a user's file imports, and that those import, in the order of their import lines.

    They are found by reading, not by running: beside the file that imports them, in `folders`, and in the folders of
    PYTHONPATH that hold no installed packages. Files in the folders `known` are left out.
    """
    modules: dict[Path, None] = {}
    waiting, python_path = [path], [*folders, *_python_path()]
    while waiting:
        file = waiting.pop(0)
        for level, name in _import_names(plain_file.read_up_to(file)):
            places = [file.parents[level - 1]] if 0 < level <= len(file.parents) else [file.parent, *python_path]
            for module in (candidate for place in places for candidate in _modules(place, name)):
                if module != path and module not in modules and not any(module.is_relative_to(root) for root in known):
                    modules[module] = None
                    waiting.append(module)
    return list(modules)


def _python_path() -> list[Path]:
    folders = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return [folder for folder in folders if folder.name not in ("site-packages", "dist-packages")]


@cache
def _import_names(text: bytes) -> list[tuple[int, str]]:
    """The imports of a text: how many folders up each begins (0: in those of `sys.path`), and a name with dots.

    `from a import b` may mean the module a.b, so it counts as that. Modules of the standard library are left out.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # loading the file says so
        return []
    imports: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = [node.module] if node.module else []
            imports += [(node.level, ".".join([*module, alias.name])) for alias in node.names]
    return [entry for entry in imports if entry[0] or entry[1].partition(".")[0] not in sys.stdlib_module_names]


def _modules(folder: Path, name: str) -> Iterator[Path]:
    """The files that importing a name with dots from this folder runs: packages, then the module."""
    for part in name.split("."):
        package, module = folder / part / "__init__.py", folder / f"{part}.py"
        if package.is_file():
            yield package
        elif module.is_file():
            yield module
            return
        folder /= part
