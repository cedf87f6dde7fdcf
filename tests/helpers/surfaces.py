"""Calls of the product that touch what other users may hold, found in its syntax trees; `tests/surfaces.toml` has them.

A kind of call is one function here: it looks at a node and says whether it is of the kind. Aliases of modules and
functions are not followed, so the few modules that are looked for must be imported by their names. C and shell are
searched by words.
"""

import ast
import re
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.helpers.tracked import files_of, room_of

READING_FLAGS = {"O_RDONLY", "O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"}
WRITING = {"write_text", "write_bytes", "touch", "copy", "copy2", "copyfile", "copytree", "mknod", "mkfifo", "ZipFile"}
"""Methods of paths, and functions, that write to a name and follow links, beside `open`."""
OWNING = {"chown", "lchown", "fchown", "chmod", "lchmod"}
LISTENING = {"listen", "add_insecure_port", "add_secure_port", "start_server", "start_unix_server", "create_server"}
SERVERS = {"HTTPServer", "ThreadingHTTPServer", "MetricsServer", "ControlServer"}
IMPORTING = {"import_module", "__import__", "exec_module", "exec", "eval", "CDLL", "run_path", "run_module"}
IN_C = re.compile(
    r"(?<![\w.>])(socket|socketpair|bind|listen|accept4?|connect|recv|recvfrom|recvmsg|read|pread|open|openat|fopen|"
    r"popen|system|exec[lv]p?e?|getenv|secure_getenv|chown|fchown|chmod|dlopen)(?= ?\()"
)
IN_SHELL = re.compile(
    r"(?<![\w./-])(exec|eval|source|sudo|curl|wget|chown|chmod|chroot|flock|apt-get install|gpg)(?![\w-])"
)
ENVIRONMENT = {"environ", "environb", "getenv"}
_FLAG = re.compile(r"O_[A-Z]+")
OPENERS = {"open_plain", "open_named", "opened"}
"""Functions whose files may have any number of bytes, and lines of any length."""
IN_SHEBANG = re.compile(r"#!\S*/(?:env )?(?:ba|da)?sh\b")


@dataclass(frozen=True, order=True)
class Site:
    """One call: the file that it is in, and its text."""

    file: str
    text: str


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _text(node: ast.expr) -> str:
    """As `ast.unparse` says it, which takes a thousand times as long for a name with dots."""
    if isinstance(node, ast.Attribute):
        return f"{_text(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _named(call: ast.Call) -> str:
    """The called function as text."""
    return _text(call.func)


def _owner(call: ast.Call) -> str:
    """What a method is called on, as text; empty for a function."""
    return _text(call.func.value) if isinstance(call.func, ast.Attribute) else ""


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
    return _named(call) == "socket.socket" and not any(family in ast.unparse(call) for family in families)


def makes_another_socket(call: ast.Call) -> bool:
    """Makes a socket that is no Unix socket with a name, or connects by TCP."""
    made = _named(call) in ("socket.socket", "socket.socketpair", "socket.create_connection")
    return made and not makes_a_unix_socket(call)


def listens(call: ast.Call) -> bool:
    """Binds a socket, or serves on one."""
    if _name(call) == "bind":
        return len(call.args) == 1  # `frame.bind(symbol, value)` binds no socket
    return _name(call) in LISTENING | SERVERS


def executes(call: ast.Call) -> bool:
    """Starts a program, or becomes one."""
    named = _named(call)
    return named.startswith(("subprocess.", "os.exec", "os.spawn", "os.posix_spawn", "asyncio.create_subprocess")) or (
        named in ("os.system", "os.popen", "pty.spawn")
    )


def loads_code(call: ast.Call) -> bool:
    """Takes bytes as code: Python, a library, or a pickle."""
    return _name(call) in IMPORTING or _named(call) in ("pickle.loads", "pickle.load")


def reads(call: ast.Call) -> bool:
    """Reads a file by its name, not by `common.plain_file`, or opens a folder that may be a link."""
    name, owner = _name(call), _owner(call)
    if name == "open" and owner == "os":
        words = ast.unparse(call.args[1])
        return (
            not writes(call)
            and "O_PATH" not in words
            and not {"O_DIRECTORY", "O_NOFOLLOW"} <= set(_FLAG.findall(words))
        )
    if name == "open":
        of_a_file = owner in ("", "io", "gzip") or all(isinstance(given, ast.Constant) for given in call.args)
        return of_a_file and not set(_mode(call)) & set("wax+?")
    return (
        name in ("read_text", "read_bytes") and owner not in ("", "plain_file")
    ) or f"{owner}.{name}" == "sqlite3.connect"


def without_bound(tree: ast.AST) -> Iterator[str]:
    """Where the lines, or the whole, of a file of others are taken without `plain_file.lines` or a number of bytes."""
    for block in (node for node in ast.walk(tree) if isinstance(node, ast.With)):
        names = {
            ast.unparse(item.optional_vars)
            for item in block.items
            if isinstance(item.context_expr, ast.Call) and _name(item.context_expr) in OPENERS and item.optional_vars
        }
        for node in ast.walk(block):
            if isinstance(node, ast.For | ast.comprehension):
                text = ast.unparse(node.iter)
                found = text.removeprefix("enumerate(").partition(",")[0].rstrip(")") in names
            else:
                text = ast.unparse(node) if isinstance(node, ast.Call) and not node.args else ""
                found = text.removesuffix(".read()") in names
            if found:
                yield text


KINDS: Mapping[str, Callable[[ast.Call], bool]] = {
    "write": writes, "owner": owns, "lock": waits_for_a_lock, "unix": makes_a_unix_socket,
}  # fmt: skip
"""By the name of their tables in `tests/surfaces.toml`: each call has a row with its reason."""

ENTRIES: Mapping[str, Callable[[ast.Call], bool]] = {
    "socket": makes_another_socket, "listen": listens, "exec": executes, "code": loads_code, "read": reads,
}  # fmt: skip
"""Where bytes of another party enter: each call is counted in one `[[surface]]`, as environment, C and shell are."""


@cache
def product(root: Path) -> Sequence[tuple[str, ast.Module]]:
    """Every module of all rooms: the folders with a package that are neither tests nor benchmarks."""
    found = []
    for file in files_of(root):
        name = file.relative_to(root)
        if file.suffix == ".py" and room_of(name) not in ("tests", "benchmarks", "docs") and len(name.parts) > 1:
            found.append((str(name), ast.parse(file.read_text())))
    return found


def sites(root: Path, kind: Callable[[ast.Call], bool]) -> Iterator[Site]:
    """The calls of a kind in all rooms."""
    for file, tree in product(root):
        for node in _calls(tree):
            if kind(node):
                yield Site(file, ast.unparse(node))


@cache
def _calls(tree: ast.Module) -> Sequence[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def names_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT and _text(node.value) == "os"


def by_words(pattern: re.Pattern[str], text: str, comment: str) -> Iterator[str]:
    """The words of a pattern in lines of a program that are not comments as a whole."""
    for line in text.splitlines():
        if not line.lstrip().startswith((comment, "*")):
            yield from pattern.findall(line)


def entries(root: Path) -> Counter[str]:
    """Every file where bytes of another party may enter, as "KIND FILE", with the number of such places."""
    found: Counter[str] = Counter()
    for name, kind in ENTRIES.items():
        found.update(f"{name} {site.file}" for site in sites(root, kind))
    for file, tree in product(root):
        found.update(f"environment {file}" for node in ast.walk(tree) if names_environment(node))
    for path in files_of(root):
        file = str(path.relative_to(root))
        if room_of(path.relative_to(root)) in ("tests", "benchmarks", "docs"):
            continue
        if path.suffix in (".c", ".h"):
            found.update(f"c {file} {word}" for word in by_words(IN_C, path.read_text(), "//"))
        elif path.suffix in ("", ".sh") and IN_SHEBANG.match(path.read_text()):
            found.update(f"shell {file} {word}" for word in by_words(IN_SHELL, path.read_text(), "#"))
    return found


def listed(surfaces: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """The places that the surfaces list by their kind, with ` xN` behind a file where there are several."""
    found: Counter[str] = Counter()
    for kind, files in (each for surface in surfaces for each in surface["at"].items()):
        for file in files.split(","):
            place, _, count = file.strip().partition(" x")
            found[f"{kind} {place}"] += int(count or 1)
    return found


def page(surfaces: Sequence[Mapping[str, Any]]) -> str:
    """The list of the section in docs/security.md."""
    lines = []
    for each in surfaces:
        tests = ", ".join(f"`{test}`" for test in each["tests"])
        line = f"- **{each['what']}.** From: {each['from']}. Guard: {each['guard']}. Tests: {tests}."
        lines += textwrap.wrap(line, 150, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


if __name__ == "__main__":
    ROOT = Path(__file__).parents[2]
    print(page(tomllib.loads((ROOT / "tests" / "surfaces.toml").read_text())["surface"]))
