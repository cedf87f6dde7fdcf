"""A unit of modules that are compiled together, the key of what it is made of, and the build that fits the key."""

import hashlib
import os
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from typing import NamedTuple

from common import cache

__all__ = ["Unit"]

FORMAT = "6"
"""Changes when builds are made in another way."""
DIRECT = "_direct.c"
CHECKED = "checked"
"""The last line of a record: all files named before it have been imported and are whole."""


class Build(NamedTuple):
    """Extensions in one folder: the library of all compiled modules, and the modules in C. `compilers` made them; if
    that was quick, they are slower."""

    folder: str
    compilers: str
    files: dict[str, str]
    """The path of each extension by its name."""
    quick: bool = False


class Unit(NamedTuple):
    """The modules in `folders`, but for `left`, and the other `modules`; paths are relative to the tree at `root`.

    What is compiled may have constants and layouts of everything in `packages` inside, so these decide the key.
    """

    name: str
    root: str
    packages: tuple[str, ...]
    folders: tuple[str, ...]
    modules: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    hot: tuple[str, ...] = ()
    """The modules and folders that the C compiler optimizes: those that a packet enters."""

    def sources(self) -> dict[str, str]:
        """The path of each module of the unit by its name. A package's own file stays as it is."""
        paths = [path for path in _files(self.root, self.folders, ".py") if path not in self.left]
        own = [path for path in [*paths, *self.modules] if not path.endswith("__init__.py")]
        return {path.removesuffix(".py").replace("/", "."): path for path in own}

    def seldom(self) -> list[str]:
        """The names of the modules of the unit that are not in `hot`."""
        return [module for module, path in self.sources().items() if not path.startswith(self.hot)]

    def extensions(self) -> dict[str, str]:
        """The path of each C file of the unit by the module's name. Only a build has these modules: the Python that
        imports one does without where it runs as a source."""
        own = [path for path in _files(self.root, self.folders, ".c") if not path.endswith(DIRECT)]
        return {path.removesuffix(".c").replace("/", "."): path for path in own}

    def direct(self) -> list[str]:
        """The C files that are no modules but functions, which compiled code calls directly.

        `FOLDER/native/NAME_direct.c` has C forms of functions of `FOLDER/NAME.py`. The header beside it declares
        `NAME_f` for a function `f`, and `worker.py` puts the call of the one in place of the other.
        """
        return list(_files(self.root, self.folders, DIRECT))

    def key(self) -> str:
        """16 hexadecimal digits of the sources, the binary interface of this Python, and the way of building."""
        digest = hashlib.sha256("\0".join([FORMAT, EXTENSION_SUFFIXES[0], *self.sources()]).encode())
        for path in [*_files(self.root, self.packages, ".py"), *_files(self.root, self.folders, (".c", ".h"))]:
            with open(os.path.join(self.root, path), "rb") as source:
                content = source.read()
            digest.update(f"{path} {len(content)}\0".encode() + content)
        return digest.hexdigest()[:16]


def _files(root: str, folders: tuple[str, ...], suffix: str | tuple[str, ...]) -> Iterator[str]:
    """The files of folders, and of all folders in them, whose names end so; relative to `root`, in one order."""
    for folder in folders:
        for place, inner, names in os.walk(os.path.join(root, folder)):
            inner.sort()
            for name in sorted(names):
                if name.endswith(suffix):
                    yield os.path.relpath(os.path.join(place, name), root)


def record_path(unit: Unit, key: str, folder: str | None = None, *, quick: bool = False) -> str:
    """The file that names the build for a key. It is replaced whole, so that no reader sees a build half made."""
    name = f"{unit.name}-{key}-quick.build" if quick else f"{unit.name}-{key}.build"
    return os.path.join(cache.directory() if folder is None else folder, name)


def record(build: Build) -> str:
    """The content of that file: a folder beside it, the compilers, each extension with its size."""
    rows = [os.path.basename(build.folder), build.compilers]
    rows += [
        f"{module} {os.path.basename(path)} {os.path.getsize(path)}" for module, path in sorted(build.files.items())
    ]
    return "\n".join([*rows, CHECKED, ""])


def find(unit: Unit, key: str, *, quick: bool = True) -> Build | None:
    """The build of a unit for a key, if there is one and all its files are there in full size: the user's own, or the
    one that came with the lab. Where there is neither, one that was made quickly, unless that will not do."""
    record = _read(record_path(unit, key), cache.is_trusted) or _read(
        record_path(unit, key, cache.SHIPPED), lambda _: True
    )
    if record is None and quick and (made := _read(record_path(unit, key, quick=True), cache.is_trusted)):
        record = made._replace(quick=True)
    return record


def _read(path: str, trusted: Callable[[os.stat_result], bool]) -> Build | None:
    try:
        with open(path, encoding="utf-8") as file:
            if not trusted(os.fstat(file.fileno())):
                return None
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    if len(lines) < 3 or lines[-1] != CHECKED:
        return None
    folder, compilers, *rows = lines[:-1]
    files: dict[str, str] = {}
    for row in rows:
        module, _, rest = row.partition(" ")
        name, _, size = rest.partition(" ")
        files[module] = os.path.join(os.path.dirname(path), folder, name)
        try:
            status = os.stat(files[module])
            if str(status.st_size) != size or not trusted(status):
                return None
        except OSError:
            return None
    return Build(os.path.join(os.path.dirname(path), folder), compilers, files)
