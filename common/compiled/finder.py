"""Imports the compiled form of a unit where a build fits its sources, and the sources themselves everywhere else."""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from common.compiled.unit import Build, Unit, find

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # what a loader must have is below; the module of that class would import pathlib and more

__all__ = ["REMEDY", "SWITCH", "switch", "use"]

SWITCH = "MRCLAB_COMPILED"
CHOICES = ("auto", "off", "on")
"""Use a build that fits; use none; refuse to run without one."""
REMEDY = "./lab compile"


class Form(NamedTuple):
    """How a unit was imported by this process."""

    compiled: bool
    why: str
    quick: bool = False
    """Whether compilers made it that take little time and leave much to the code."""


class _Finder:
    """Answers for the modules of one build; no others are its business."""

    def __init__(self, build: Build) -> None:
        self._files = build.files
        self._loader: _Loader | None = None

    def holds(self, library: ModuleType) -> None:
        """The library of the compiled modules has been loaded."""
        self._loader = _Loader(library)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if file := self._files.get(name):
            return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))
        if self._loader is None or not self._loader.knows(name):
            return None
        return spec_from_file_location(name, self._loader.library.__file__, loader=self._loader)


class _Loader(Loader):
    """Begins the modules that a library of mypyc's holds. mypyc makes an extension for each module to do that, which
    takes a quarter of a build and most of the time of importing it."""

    def __init__(self, library: ModuleType) -> None:
        self.library = library

    def knows(self, name: str) -> bool:
        return hasattr(self.library, _begin(name))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, which its function also runs and puts into `sys.modules`, as the import of an extension does."""
        import ctypes  # a process that runs the sources need not wait for it

        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        begin = _begin(spec.name)
        address = pointer(getattr(self.library, begin), f"{self.library.__name__}.{begin}".encode())
        module: ModuleType = ctypes.PYFUNCTYPE(ctypes.py_object)(address)()
        module.__file__ = self.library.__file__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def _begin(name: str) -> str:
    """The attribute of a library that begins a module: a capsule of a C function without arguments."""
    return f"init_{name.replace('.', '___')}"


def library(unit: Unit, key: str) -> str:
    """The name of the extension that holds the code of all modules; one for each key, so that none is mistaken."""
    return f"{unit.name}_{key}__mypyc"


def switch() -> str:
    """The choice that the environment asks for. Raises ValueError."""
    choice = os.environ.get(SWITCH) or CHOICES[0]
    if choice not in CHOICES:
        raise ValueError(f"{SWITCH} is {choice!r}; valid: {', '.join(CHOICES)}")
    return choice


def use(unit: Unit) -> Form:
    """Have this process import the compiled form of a unit if a build fits; to be called before the first import.

    Raises RuntimeError if the environment demands a build and none fits, ValueError for a wrong switch.
    """
    choice = switch()
    form = Form(False, f"{SWITCH} is off") if choice == "off" else _use(unit)
    if choice == "on" and not form.compiled:
        raise RuntimeError(
            f"{SWITCH} is on, but {unit.name} cannot be used compiled: {form.why}; {REMEDY} makes a build"
        )
    return form


def _use(unit: Unit) -> Form:
    try:
        key = unit.key()
    except OSError as error:
        return Form(False, f"its sources cannot be read: {error.strerror}: {error.filename}")
    build = find(unit, key)
    if build is None:
        return Form(False, "there is no build of these sources for this Python")
    finder = _Finder(build)
    sys.meta_path.insert(0, finder)
    try:
        finder.holds(importlib.import_module(library(unit, key)))  # all of the code: if this loads, the rest does
    except ImportError as error:
        sys.meta_path.remove(finder)
        return Form(False, f"the build cannot be loaded: {error}")
    return Form(True, build.compilers, build.quick)
