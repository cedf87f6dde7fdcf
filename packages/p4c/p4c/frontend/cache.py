"""Results of earlier compilations, kept by the content of every file that went into them.

An entry is one JSON file named by what was asked for (path, options, this compiler's own text). It lists the files
that were read with their digests, and the places where an include was looked for in vain; it stands only while all of
these are as they were.
"""

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import cache as caches
from common import files, plain_file

SOURCE_BYTES_MAX = 2 << 20  # of a program with all that it includes
_KINDS = (".py", ".p4")


@dataclass(frozen=True)
class Compiled:
    """A compiled program: BMv2 JSON as a document, P4Info as protobuf text, and printed warnings.

    Who asks for the same program twice may get the same document: it must not be changed.
    """

    json: dict[str, Any]
    p4info_text: str
    warnings: str = ""

    @functools.cached_property
    def json_text(self) -> str:
        return json.dumps(self.json, indent=1) + "\n"


@functools.cache
def _compiler_digest() -> str:
    """Another compiler may give another result: its own text, and that of the model which writes the JSON, is part of
    the key."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted((*(root / "frontend").rglob("*"), *(root / "model").rglob("*"))):
        if path.suffix in _KINDS:
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


def key(
    path: Path, include_paths: Sequence[Path], definitions: Mapping[str, str], includable: frozenset[Path] | None = None
) -> str:
    """Names the entry for one request."""
    asked = [str(path), str(path.absolute()), [str(p.absolute()) for p in include_paths], sorted(definitions.items())]
    allowed = None if includable is None else sorted(map(str, includable))
    return hashlib.sha256(json.dumps([asked, allowed, _compiler_digest()]).encode()).hexdigest()[:32]


def _digest(path: Path) -> str:
    return hashlib.sha256(plain_file.read_up_to(path, SOURCE_BYTES_MAX)).hexdigest()


def load(directory: Path, name: str) -> Compiled | None:
    """The stored result, if nothing that it depends on has changed."""
    file = directory / f"{name}.p4c.json"
    try:
        state = file.stat()
        if not caches.is_trusted(state):
            return None
        read, missing, made = _entry(file, state.st_mtime_ns, state.st_ino)
        if any(_digest(Path(p)) != digest for p, digest in read) or any(Path(p).exists() for p in missing):
            return None
        return made
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # absent, unreadable or torn: compile again


@functools.lru_cache(maxsize=16)
def _entry(file: Path, modified_ns: int, inode: int) -> tuple[list[list[str]], list[str], Compiled]:
    """An entry's contents, read once a process while the file is the same: a process of a sweep asks for every run."""
    entry = json.loads(file.read_bytes())
    made = Compiled(*(entry["result"][part] for part in ("json", "p4info", "warnings")))
    return entry["read"], entry["missing"], made


def store(directory: Path, name: str, read: Iterable[Path], missing: Iterable[Path], made: Compiled) -> None:
    """Keep a result; where that is impossible (a read-only home) nothing is kept and nothing is lost."""
    with contextlib.suppress(OSError):
        entry = {
            "read": [[str(p.absolute()), _digest(p)] for p in read],
            "missing": [str(p.absolute()) for p in missing],
            "result": {"json": made.json, "p4info": made.p4info_text, "warnings": made.warnings},
        }
        files.make_cache(directory)
        file = directory / f"{name}.p4c.json"
        files.write(file, json.dumps(entry))
        files.drop_unused(directory, "*.p4c.json", file.stat().st_mtime)
