"""Calls of the product that touch what other users may hold, found in its syntax trees; `tests/surfaces.toml` has them.

A kind of call is one function here: it looks at a call and says whether it is of the kind. Aliases of modules and
functions are not followed, so the few modules that are looked for must be imported by their names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.tracked import files_of

READING_FLAGS = {"O_RDONLY", "O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"}
WRITING = {"write_text", "write_bytes", "touch", "copy", "copy2", "copyfile", "copytree", "mknod", "mkfifo", "ZipFile"}
"""Methods of paths, and functions, that write to a name and follow links, beside `open`."""
OWNING = {"chown", "lchown", "fchown", "chmod", "lchmod"}


@dataclass(frozen=True, order=True)
class Site:
    """One call: the file, the function that it is in, and its text."""

    file: str
    function: str
    text: str


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _owner(call: ast.Call) -> str:
    """What a method is called on, as text; empty for a function."""
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _mode(call: ast.Call) -> str:
    """The mode of an `open`; "?" when it is no constant."""
    given = [word.value for word in call.keywords if word.arg == "mode"]
    if not given:
        place = 0 if _owner(call) not in ("", "io", "os", "gzip") else 1
        given = call.args[place : place + 1]
    if not given:
        return "r"
    (mode,) = given
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
        return mode.value
    return "?" if _owner(call) in ("", "io", "os") else "r"  # `Run.open(path)` and its like open no file


def writes(call: ast.Call) -> bool:
    """Writes to a file by its name, and may follow a link there. Files that must not exist yet (`x`, O_EXCL) do not."""
    name, owner = _name(call), _owner(call)
    if name == "open" and owner == "os":
        flags = {node.attr for node in ast.walk(call.args[1]) if isinstance(node, ast.Attribute)}
        names = {node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)} - {"os"}
        return "O_EXCL" not in flags and bool(names or flags - READING_FLAGS)
    if name == "open":
        return bool(set(_mode(call)) & set("wa+?"))
    if name == "copy" and owner != "shutil":
        return False  # of a dictionary
    return name in WRITING


def owns(call: ast.Call) -> bool:
    """Changes the owner or the mode of a file by its name."""
    return _name(call) in OWNING


def waits_for_a_lock(call: ast.Call) -> bool:
    """Takes a lock of the kernel, and may wait for it without an end."""
    return _name(call) in ("flock", "lockf") and "LOCK_NB" not in ast.unparse(call)


def makes_a_unix_socket(call: ast.Call) -> bool:
    """Makes a Unix socket, with which a process may listen, or connect without asking who listens."""
    families = ("AF_INET", "AF_PACKET", "AF_NETLINK")
    return ast.unparse(call.func) == "socket.socket" and not any(family in ast.unparse(call) for family in families)


KINDS: Mapping[str, Callable[[ast.Call], bool]] = {
    "write": writes,
    "owner": owns,
    "lock": waits_for_a_lock,
    "unix": makes_a_unix_socket,
}
"""By the name of their tables in `tests/surfaces.toml`."""


def calls(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Every call with the dotted name of the function or class that it is in."""
    for child in ast.iter_child_nodes(tree):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}" if function else child.name
        if isinstance(child, ast.Call):
            yield function, child
        yield from calls(child, inner)


def sites(root: Path, kind: Callable[[ast.Call], bool]) -> Iterator[Site]:
    """The calls of a kind in all rooms: the folders with a package that are neither tests nor benchmarks."""
    for file in files_of(root):
        parts = file.relative_to(root).parts
        if file.suffix != ".py" or parts[0] in ("tests", "benchmarks", "docs") or len(parts) == 1:
            continue
        for function, call in calls(ast.parse(file.read_text())):
            if kind(call):
                yield Site(str(file.relative_to(root)), function, ast.unparse(call))
