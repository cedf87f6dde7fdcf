"""The two pipelines that the controller pushes: the program that a switch loads (BMv2 JSON), its names (P4Info)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from common import plain_file
from common.quoting import command
from p4c import compile_program
from switch.p4rt import P4Info, parse_p4info_text
from switch.p4rt import p4runtime_pb2 as p4rt
from topo import SwitchProgram

_PROGRAM_BYTES_MAX = 24 << 20  # as a switch takes it
PROGRAMS = Path(__file__).parents[1] / "p4"
NAMES: tuple[SwitchProgram, ...] = ("leaf", "spine")


@dataclass(frozen=True)
class PipelineConfig:
    """One program. `device_config` is BMv2 JSON, `p4info_text` P4Info in protobuf text format."""

    name: str
    p4info_text: str
    device_config: bytes

    @cached_property
    def p4info(self) -> P4Info:
        return parse_p4info_text(self.p4info_text)

    @cached_property
    def cookie(self) -> int:
        """A number for this very pipeline: 64 bits of a digest, never 0; the folder of the checkout does not count."""
        return int(self._digest(positions=True)[:16], 16) or 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the program does, in hexadecimal: comments and line numbers do not count."""
        return self._digest(positions=False)

    def _digest(self, *, positions: bool) -> str:
        info = self.p4info.message.SerializeToString(deterministic=True)
        return hashlib.sha256(info + without_places(self.device_config, positions=positions)).hexdigest()

    @cached_property
    def config_bytes(self) -> bytes:
        """A serialised ForwardingPipelineConfig, made once for all switches."""
        config = p4rt.ForwardingPipelineConfig(p4_device_config=self.device_config)
        config.p4info.CopyFrom(self.p4info.message)
        config.cookie.cookie = self.cookie
        return bytes(config.SerializeToString())


Pipelines = Mapping[SwitchProgram, PipelineConfig]


def without_places(device_config: bytes, *, positions: bool) -> bytes:
    """BMv2 JSON without the folders of its source files; without `positions`, also without source positions.

    Bytes that are not JSON, or too much of it, stay as they are.
    """

    def shorten(fields: dict[str, Any]) -> dict[str, Any]:
        if not positions:
            fields.pop("source_info", None)
        for name in ("filename", "program"):
            if isinstance(fields.get(name), str):
                fields[name] = Path(fields[name]).name
        return fields

    try:
        return json.dumps(plain_file.parse_json(device_config, object_hook=shorten), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return device_config


def read_pipeline(name: str, directory: Path) -> PipelineConfig:
    """A pipeline from a compiler's files `NAME.json` and `NAME.p4info.txtpb`. Raises FileNotFoundError."""
    p4info, program = directory / f"{name}.p4info.txtpb", directory / f"{name}.json"
    for path in (p4info, program):
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: is missing: {command('switch', 'compile', f'p4/{name}.p4', '-o', directory)}"
            )
    return PipelineConfig(name, plain_file.read_named(p4info), plain_file.read_up_to(program, _PROGRAM_BYTES_MAX))


def read_pipelines(directory: Path) -> Pipelines:
    return {role: read_pipeline(role, directory) for role in NAMES}


def compiled_pipelines(programs: Path | None = None) -> Pipelines:
    """`leaf.p4` and `spine.p4` of `programs` (p4/); the compiler caches its results. Raises CompileError."""
    pipelines: dict[SwitchProgram, PipelineConfig] = {}
    for role in NAMES:
        compiled = compile_program((programs or PROGRAMS) / f"{role}.p4")
        pipelines[role] = _pipeline(role, compiled.p4info_text, json.dumps(compiled.json))
    return pipelines


@lru_cache(maxsize=16)
def _pipeline(name: str, p4info_text: str, json_text: str) -> PipelineConfig:
    """One object for a program, whose digests and names are found once a process."""
    return PipelineConfig(name, p4info_text, json_text.encode())
