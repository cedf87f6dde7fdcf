"""The identity of a run: digests of everything that decides its course, and one key over them and the user's choices.

Equal keys are equal runs: in virtual time to the last packet, on real links as far as a machine repeats itself. A sweep
may take a finished run instead of making it again, and a replay knows whether it would be one.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import controller
from common import plain_file, user_code
from common.door import thing
from endpoint import plugins
from running import sdk
from running.options import DECIDING, IF_CHOSEN
from scenarios import Program, library
from scenarios.user_traffic.replay import Source
from topo import Plan, plan_document

__all__ = ["CODE", "code_digest", "digest", "file_digest", "import_name", "import_roots", "key", "placed"]

ROOT = Path(__file__).resolve().parents[1]
CODE = {
    "transport": ("endpoint", "algorithms"),
    "switch": ("switch", "p4c"),
    "lab": (
        "common",
        "schedules",
        "topo",
        "controller",
        "running",
        "scenarios/__init__.py",
        "scenarios/library.py",
        "scenarios/scenario.py",
        "scenarios/user_traffic",
        "judging/single_plane.py",
    ),
}
"""The code of every run. `tests/running/test_identity.py` compares it with what runs really load."""
PROGRAMS = ("mrclab",)
"""The code that programs in hosts may load beside their own; commands that use verbs load libmrc as well."""
LIBRARY = ("libmrc/include", "libmrc/source")
JUDGES = "judging"
"""The code that scenarios import to judge their runs. It decides no run, but for what CODE names."""
SUFFIXES = (".py", ".c", ".h", ".map")


@cache
def version() -> str:
    """The version of mrclab as it is installed; "" where it is not."""
    try:
        return importlib.metadata.version("mrclab")
    except importlib.metadata.PackageNotFoundError:
        return ""


def hashes(
    source: str,
    plan: Plan,
    settings: Mapping[str, Any] | None = None,
    programs: Sequence[Program] = (),
    variant: str = "",
) -> dict[str, str]:
    """Digests (16 hexadecimal digits) of the P4 program, the scenario's file, the plan, and the code that runs them.

    `source` is what the user called the scenario: a shipped name or the path of a file. Files that `settings` name, and
    the modules that they import, are part of the transport. "imports" is of the modules that the scenario's file
    imports, and "programs" of the files that the words of `programs` name; a run without any has no such digest.
    `variant` is MODULE:NAME of what switches run in place of `p4/`: its room is then part of the switch.
    Raises CompileError.
    """
    file = library.file_of(source)
    workload = Source.parse(source).digest() if library.is_workload(source) else ""
    own = "".join(digest(plain_file.read_up_to(path)) for path in users_files(settings or {}))
    code = {name: code_digest(places) for name, places in CODE.items()}
    if own:
        code["transport"] = digest((code["transport"] + own).encode())
    if file is not None and file.exists() and (helpers := imports(file)):
        code["imports"] = digest("".join(digest(plain_file.read_up_to(path)) for path in helpers).encode())
    if programs:
        code["programs"] = programs_digest(programs)
    if variant:
        code["switch"] = code_digest((*CODE["switch"], variant.partition(".")[0].partition(":")[0]))
    return {
        "program": program_digest(thing(variant).programs if variant else None),
        "scenario": workload or (digest(plain_file.read_up_to(file)) if file is not None and file.exists() else ""),
        "plan": digest(json.dumps(plan_document(plan), sort_keys=True).encode()),
        **code,
    }


def users_files(settings: Mapping[str, Any]) -> Iterator[Path]:
    """The files of algorithms that settings name, and the modules that those import."""
    for path in plugins.files(settings):
        if path.is_file():
            yield path
            yield from imports(path)


def imports(file: Path) -> list[Path]:
    """The modules that a file imports, and those that they import, but for the code of every run and the judges'."""
    return _shipped_imports(file) if file.is_relative_to(ROOT) else _imports(file)


def _imports(file: Path) -> list[Path]:
    known = [placed(place) for places in CODE.values() for place in places]
    return user_code.imported(file, [*known, ROOT / JUDGES], import_roots())


_shipped_imports = cache(_imports)
"""Which modules they are is looked up once per process, as `code_digest` reads code once; users' files may change."""


def programs_digest(programs: Sequence[Program]) -> str:
    """The digest of what programs in hosts load: the lab's code for them, and the files that their words name."""
    verbs = any(program.command and sdk.uses_verbs(sdk.found_command(program.argv[0])) for program in programs)
    files = {path for program in programs for path in program_files(program.argv)}
    read = [f"{path.name} {file_digest(path)}" for path in sorted(files)]
    return digest("\n".join([code_digest((*PROGRAMS, *(LIBRARY if verbs else ()))), *read]).encode())


def program_files(argv: Sequence[str]) -> Iterator[Path]:
    """The files that a program's words name: its command, scripts with the modules that they import, and data."""
    for at, word in enumerate(argv):
        named = sdk.found_command(word) if at == 0 and word != "python" else word.rpartition("=")[2]
        path = Path(named or "")
        if not path.is_file():
            continue
        yield path
        if path.suffix == ".py" or at == 0:
            yield from imports(path)


def file_digest(path: Path) -> str:
    """The digest of a file of any size."""
    with plain_file.open_named(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def key(options: Mapping[str, Any]) -> str:
    """The key of a run, from its options as they are stored: 16 hexadecimal digits."""
    chosen = {name: options.get(name) for name in DECIDING}
    chosen |= {name: options[name] for name in IF_CHOSEN if name in options}
    return digest(json.dumps(chosen, sort_keys=True, default=str).encode())


def program_digest(programs: Path | None = None) -> str:
    """The digest of both compiled pipelines; comments, spaces and folders of the P4 source do not count."""
    pipelines = controller.compiled_pipelines(programs)
    return digest("".join(pipelines[role].digest for role in sorted(pipelines)).encode())


@cache
def code_digest(places: tuple[str, ...]) -> str:
    """The digest of all source files in these folders of the project, with their names; computed once a process."""
    together = hashlib.sha256()
    for name, path in sorted((import_name(path), path) for path in sources(places)):
        together.update(str(name).encode() + b"\0" + path.read_bytes() + b"\0")
    return together.hexdigest()[:16]


def import_roots() -> list[Path]:
    """The folders whose Python is imported by name: the clone, and each package of `packages/`."""
    return [ROOT, *sorted(file.parent for file in ROOT.glob("packages/*/pyproject.toml"))]


def import_name(path: Path) -> Path:
    """A file's path as it is imported: of a package, the path below the package's folder."""
    name = path.relative_to(ROOT)
    return Path(*name.parts[2:]) if name.parts[0] == "packages" else name


def placed(place: str) -> Path:
    """Where a place of the project is: below the clone, or below a package's folder."""
    path = ROOT / place
    return path if path.exists() else next(ROOT.glob(f"packages/*/{place}"), path)


def sources(places: Iterable[str]) -> Iterable[Path]:
    """The source files at these places of the project."""
    for path in map(placed, places):
        yield from [path] if path.is_file() else (p for p in path.rglob("*") if p.suffix in SUFFIXES)


def digest(data: bytes) -> str:
    """SHA-256, of which 16 hexadecimal digits are kept."""
    return hashlib.sha256(data).hexdigest()[:16]
