"""Python files of a user, loaded as modules; an error in them is reported with file and line."""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path
from types import ModuleType


def load(path: Path, name: str, refusal: type[ValueError], setting: str = "") -> ModuleType:
    """The module that a file holds. Raises `refusal`, after the name of the setting that named the file."""
    before = f"{setting}: " if setting else ""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise refusal(f"{before}{path}: no such file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except RAISED as error:
        raise refusal(before + told(error, path)) from error
    return module


RAISED = (Exception, SystemExit, GeneratorExit)
"""What a user's code may raise. `sys.exit()` in a scenario file must not end the lab with the status of a verdict; only
Ctrl-C passes through."""


def told(error: BaseException, path: Path) -> str:
    """An exception of a user's code, after its file and the line that raised it, where that is in the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.lineno is not None:
        lines = [error.lineno]
    return f"{path}{f':{lines[-1]}' if lines else ''}: {type(error).__name__}: {error}"
