"""A small P4 program made of parts, compiled, and run on an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import text_format

from p4c.frontend import Compiled
from p4c.frontend.compilation import Compilation
from p4c.model import load, load_program
from switch.engine import Engine, PortConfig
from switch.p4rt import batch
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.pipeline import ForwardingPipeline, PipelineCache
from switch.p4rt.store import EntityStore
from switch.reference import ReferenceEngine, Trace
from switch.stf.programs import make_engine

WHOLE = """#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers {{ h_t h; h_t i; }}
struct meta_t {{ bit<8> x; bit<8> y; }}
{top}
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {{
    {values}
    state start {{ p.extract(hdr.h); {states} }}
}}
control V(inout headers hdr, inout meta_t m) {{ apply {{ }} }}
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {{
    {local}
    apply {{ s.egress_spec = 1; {ingress} }}
}}
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ {egress} }} }}
control C(inout headers hdr, inout meta_t m) {{ apply {{ {compute} }} }}
control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def pipeline_of(compiled: Compiled) -> ForwardingPipeline:
    """The pipeline that a P4Runtime server makes of a program."""
    config = p4rt.ForwardingPipelineConfig(p4_device_config=compiled.json_text.encode())
    text_format.Parse(compiled.p4info_text, config.p4info)
    return PipelineCache(load_program).read(config.SerializeToString())


def store_of(pipeline: ForwardingPipeline) -> EntityStore:
    """Its entities, over a reference engine."""
    engine = ReferenceEngine()
    engine.load(pipeline.program)
    return EntityStore(pipeline, engine)


def write(store: EntityStore, kind: str, *entities: Any) -> None:
    batch.write_updates(store, [p4rt.Update(type=kind, entity=entity) for entity in entities])


def read(store: EntityStore, *entities: Any) -> list[Any]:
    """The entities that these select."""
    parts = batch.read(store, p4rt.ReadRequest(entities=entities))
    return [entity for part in parts for entity in p4rt.ReadResponse.FromString(part).entities]


class Made:
    """A program made of parts; the warnings without their source lines."""

    def __init__(self, folder: Path, source: str = WHOLE, **parts: str) -> None:
        path = folder / "main.p4"
        names = ("top", "values", "local", "ingress", "egress", "compute")
        path.write_text(source.format(**dict.fromkeys(names, "") | {"states": "transition accept;"} | parts))
        self.compilation = Compilation(path)
        self.compiled = self.compilation.run()
        self.warnings = [d.message for d in self.compilation.diagnostics.items]
        self.json: dict[str, Any] = self.compiled.json

    def engine(self, name: str = "reference", trace: Trace | None = None) -> Engine:
        engine = make_engine(name) if trace is None else ReferenceEngine(trace=trace)
        engine.load(load(self.json))
        for port in range(4):
            engine.configure_port(port, PortConfig(), 0)
        return engine

    def sent(self, frame: str, engine: Engine | None = None) -> list[tuple[int, str]]:
        """Port and bytes of the frames that leave a switch for one that comes in by port 2."""
        engine = engine or self.engine()
        engine.receive(2, bytes.fromhex(frame), 0)
        return [(out.port, out.frame.hex()) for out in engine.advance(0)]
