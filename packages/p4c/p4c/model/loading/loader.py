"""The whole file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import plain_file
from common.garbage import not_collected
from p4c.model import memory
from p4c.model.errors import ModelError
from p4c.model.loading.actions import read_actions
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.externs import read_checksums, read_externs
from p4c.model.loading.parsers import read_deparser, read_parser
from p4c.model.loading.pipelines import read_pipeline
from p4c.model.loading.scope import LoadScope
from p4c.model.loading.types import read_enums, read_intrinsics, read_types
from p4c.model.program import Program

PROGRAM_BYTES_MAX = 24 << 20  # of BMv2 JSON
_MAJOR = 2  # of the format's version
_MINOR = 24  # the newest minor version known
_COSMETIC = {"source_info", "program", "__meta__", "pragmas"}


@not_collected()
def load(source: Mapping[str, Any] | str | Path) -> Program:
    """Read a program from parsed JSON or from a file. Raises ModelError (UnsupportedError for refused features)."""
    if isinstance(source, Mapping):
        return _program(dict(source), "program")
    path = Path(source)
    try:
        data = plain_file.read_up_to(path, PROGRAM_BYTES_MAX)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    return load_program(data, path.name)


@not_collected()
def load_program(data: bytes, name: str = "program") -> Program:
    """Read a program from the bytes of a BMv2 JSON file; `name` starts the messages of ModelError."""
    if len(data) > PROGRAM_BYTES_MAX:
        raise ModelError(f"{name}: a program must have at most {PROGRAM_BYTES_MAX} bytes (got {len(data)})")
    try:
        value = plain_file.parse_json(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{name}: a BMv2 program is a JSON object, not {type(value).__name__}")
    try:
        return _program(value, name)
    except RecursionError as error:
        raise ModelError(f"{name}: expressions are nested too deeply") from error


def _program(value: dict[str, Any], name: str) -> Program:
    root = JsonCursor(value, name)
    compiler = _check_version(root)
    scope = LoadScope()
    read_types(root, scope)
    read_externs(root, scope)
    actions = read_actions(root, scope)
    parser, deparser = read_parser(root, scope), read_deparser(root, scope)
    ingress, egress = read_pipeline(root, "ingress", scope), read_pipeline(root, "egress", scope)
    program = Program(
        name=root.get_or("program", JsonCursor.text, name),
        digest=_digest(value),
        compiler=compiler,
        header_types=tuple(scope.header_types.values()),
        headers=tuple(scope.headers.values()),
        stacks=tuple(scope.stacks.values()),
        unions=tuple(scope.unions.values()),
        union_stacks=tuple(scope.union_stacks.values()),
        intrinsics=read_intrinsics(root, scope),
        aliases=dict(scope.aliases),
        errors=dict(scope.errors),
        enums=read_enums(root),
        parser=parser,
        deparser=deparser,
        ingress=ingress,
        egress=egress,
        actions=actions,
        calculations=tuple(scope.calculations.values()),
        checksums=read_checksums(root, scope),
        counters=tuple(scope.counters.values()),
        meters=tuple(scope.meters.values()),
        registers=tuple(scope.registers.values()),
        profiles=tuple(scope.profiles.values()),
        field_lists=dict(scope.field_lists),
        value_sets=tuple(scope.value_sets.values()),
    )
    too_much = memory.excess(program)
    if too_much is not None:
        root.fail(too_much[0])
    return program


def _check_version(root: JsonCursor) -> str:
    meta = root.find("__meta__")
    if meta is None:
        return ""
    version = meta.find("version")
    if version is not None:
        major, minor = (part.integer() for part in version.items(2))
        if major != _MAJOR or minor > _MINOR:
            version.unsupported(f"version {major}.{minor} of the format; known is {_MAJOR}.0 to {_MAJOR}.{_MINOR}")
    return meta.get_or("compiler", JsonCursor.text, "")


def _digest(value: dict[str, Any]) -> str:
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        parts = [(k, v) for k, v in value.items() if k not in _COSMETIC]
        return {k: _plain(v) if isinstance(v, dict | list) else v for k, v in parts}
    return [_plain(v) if isinstance(v, dict | list) else v for v in value]
