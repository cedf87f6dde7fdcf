"""The two pipelines that the controller pushes: what a switch loads (BMv2 JSON) and what it is called (P4Info)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from p4.v1 import p4runtime_pb2 as p4rt

from switch.p4rt.p4info import P4Info, parse_p4info_text
from topo.node import SwitchRole

PROGRAMS = Path(__file__).parents[1] / "p4"


@dataclass(frozen=True)
class Pipeline:
    """One program. `device_config` is BMv2 JSON, `p4info_text` P4Info in protobuf text format."""

    name: str
    p4info_text: str
    device_config: bytes

    @cached_property
    def p4info(self) -> P4Info:
        return parse_p4info_text(self.p4info_text)

    @cached_property
    def cookie(self) -> int:
        """Names this very pipeline: 64 bits of a digest of both parts, never 0."""
        digest = hashlib.sha256(self.p4info.message.SerializeToString(deterministic=True) + self.device_config)
        return int.from_bytes(digest.digest()[:8], "big") or 1

    @cached_property
    def config_bytes(self) -> bytes:
        """A serialised ForwardingPipelineConfig, made once for all switches."""
        config = p4rt.ForwardingPipelineConfig(p4_device_config=self.device_config)
        config.p4info.CopyFrom(self.p4info.message)
        config.cookie.cookie = self.cookie
        return bytes(config.SerializeToString())


Pipelines = Mapping[SwitchRole, Pipeline]


def read_pipeline(name: str, directory: Path) -> Pipeline:
    """From what a compiler wrote: `NAME.json` and `NAME.p4info.txtpb` (or p4c's `.txt`). Raises FileNotFoundError."""
    for suffix in ("p4info.txtpb", "p4info.txt"):
        p4info = directory / f"{name}.{suffix}"
        if p4info.exists():
            return Pipeline(name, p4info.read_text(), (directory / f"{name}.json").read_bytes())
    raise FileNotFoundError(f"{directory}: no {name}.p4info.txtpb; compile p4/{name}.p4 into it first")


def read_pipelines(directory: Path) -> Pipelines:
    return {"leaf": read_pipeline("leaf", directory), "spine": read_pipeline("spine", directory)}
