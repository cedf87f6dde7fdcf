"""A whole program as one C file."""

from p4c.model import Program, UnsupportedError
from p4c.model.expressions import FieldRef
from switch.native.emit.action import ActionEmitter
from switch.native.emit.calculation import Calculations
from switch.native.emit.layout import Layout, c_type, is_wide
from switch.native.emit.parser import Parsers
from switch.native.emit.statement import SCOPE_ARGS
from switch.native.emit.table import Tables, c_string


def emit(program: Program) -> str:
    """C11 text to be compiled against `switch/native/runtime`. Raises UnsupportedError, naming the construct."""
    try:
        return _text(program)
    except RecursionError as error:
        raise UnsupportedError(f"{program.name}: expressions must not be nested so deeply") from error


def _text(program: Program) -> str:
    layout = Layout(program)
    actions = ActionEmitter(program, layout)
    calculations = Calculations(program, layout)
    tables = Tables(program, layout, actions)
    parsers = Parsers(program, layout, actions, calculations)
    lines = ['#include "emitted.h"', "", *layout.declarations(), *actions.stack_helpers()]
    lines += [*calculations.functions(), *calculations.learning(), *actions.functions(), *tables.functions()]
    lines += [*parsers.parse(), *parsers.deparse(), *Passes(program, layout, calculations, tables).functions()]
    lines += [*tables.descriptions(), *_description(program, parsers)]
    return "\n".join(lines) + "\n"


def _description(program: Program, parsers: Parsers) -> list[str]:
    counts = [program.tables, program.profiles, program.meters, program.counters, program.registers]
    name = program.name.rpartition("/")[2]  # the folder would make another build of each checkout
    return [
        '__attribute__((visibility("default"))) const struct program mrclab_program = {',
        f"    {c_string(name)}, sizeof(struct headers), {parsers.headroom()},",
        f"    {', '.join(str(len(objects)) for objects in counts)},",
        "    tables, profiles, meters, counters, registers,",
        "    arrive, parse, ingress, egress, deparse, preserve,",
        "};",
    ]


class Passes:
    """The functions around the pipelines: metadata in, requests out (simple_switch.cpp of behavioral-model)."""

    def __init__(self, program: Program, layout: Layout, calculations: Calculations, tables: Tables) -> None:
        self.program = program
        self.layout = layout
        self.calculations = calculations
        self.tables = tables

    def functions(self) -> list[str]:
        return [*self._arrive(), *self._ingress(), *self._egress(), *self._preserve()]

    def _set(self, ref: FieldRef | None, text: str) -> list[str]:
        """Store a u64 in a metadata field that the program may not have."""
        if ref is None:
            return []
        width = ref.field.width_bits
        return [
            f"    {self.layout.field(ref)} = ({c_type(width)})(({text}) & 0x{ref.field.mask & (1 << 64) - 1:x}ull);"
        ]

    def _get(self, target: str, ref: FieldRef | None) -> list[str]:
        return [] if ref is None else [f"    {target} = {self.layout.field(ref)};"]

    def _arrive(self) -> list[str]:
        i = self.program.intrinsics
        return [
            "static void arrive(struct packet *p, u64 now_ns)",
            "{",
            "    struct headers *h = HEADERS(p);",
            "    (void)now_ns;",
            *self._set(i.ingress_port, "p->port_in"),
            *self._set(i.packet_length, "p->packet_length"),
            *self._set(i.instance_type, "p->instance_type"),
            *self._set(i.ingress_global_timestamp, "now_ns / 1000"),
            "}",
            "",
        ]

    def _ingress(self) -> list[str]:
        i = self.program.intrinsics
        return [
            "static void ingress(struct device *d, struct packet *p, u64 now_ns)",
            "{",
            "    struct headers *h = HEADERS(p);",
            "    p->checksum_error = 0;",
            "    p->exit = false;",
            *(f"    {line}" for line in self.calculations.verify()),
            *self._set(i.parser_error, "p->parser_error"),
            *self._set(i.checksum_error, "p->checksum_error"),
            *(["    d->digest = 0;"] if self.program.learn_lists else []),
            *(f"    {line}" for line in self.tables.pipeline(self.program.ingress)),
            "end:",
            *(["    if (d->digest)", f"        learn({SCOPE_ARGS});"] if self.program.learn_lists else []),
            *self._get("p->egress_spec", i.egress_spec),
            *self._get("p->multicast_group", i.mcast_grp),
            *self._get("p->priority", i.priority),
            "}",
            "",
        ]

    def _egress(self) -> list[str]:
        i = self.program.intrinsics
        return [
            "static void egress(struct device *d, struct packet *p, u64 now_ns)",
            "{",
            "    struct headers *h = HEADERS(p);",
            "    u64 now_us = now_ns / 1000;",
            "    (void)now_us;",
            "    p->exit = false;",
            *self._set(i.egress_global_timestamp, "now_us"),
            *self._set(i.enq_timestamp, "p->enqueue_us"),
            *self._set(i.enq_qdepth, "p->enqueue_depth"),
            *self._set(i.deq_timedelta, "now_us - p->enqueue_us"),
            *self._set(i.deq_qdepth, "p->dequeue_depth"),
            *self._set(i.qid, "p->priority"),
            *self._set_rid(),
            *self._set(i.instance_type, "p->instance_type"),
            *self._set(i.egress_port, "p->port_out"),
            *self._set(i.egress_spec, "DROP_PORT + 1"),
            *self._set(i.packet_length, "p->packet_length"),
            *(f"    {line}" for line in self.tables.pipeline(self.program.egress)),
            "end:",
            *self._get("p->egress_spec", i.egress_spec),
            "}",
            "",
        ]

    def _set_rid(self) -> list[str]:
        """Replicas and clones have one; a unicast packet keeps what ingress wrote."""
        lines = self._set(self.program.intrinsics.egress_rid, "p->rid")
        return ["    if (p->instance_type != NORMAL) {", *(f"    {line}" for line in lines), "    }"] if lines else []

    def _preserve(self) -> list[str]:
        i = self.program.intrinsics
        lines = [
            "static void preserve(struct packet *to, const struct packet *from, u32 list)",
            "{",
            "    struct headers *h = HEADERS(to);",
            "    const struct headers *f = (const struct headers *)(const void *)from->headers;",
            "    (void)f; (void)list;",
        ]
        for header in self.program.headers:
            if header.metadata:
                lines.append(f"    memset(&{self.layout.header(header)}, 0, sizeof {self.layout.header(header)});")
        lines.append("    switch (list) {")
        for number, field_list in self.program.field_lists.items():
            lines.append(f"    case {number}:")
            for ref in field_list.fields:
                to = self.layout.field(ref)
                source = "f" + to[1:]
                wide = is_wide(ref.field)
                lines.append(
                    f"        memcpy({to}, {source}, {ref.field.width_bits // 8});"
                    if wide
                    else f"        {to} = {source};"
                )
            lines.append("        break;")
        lines += ["    default:", "        break;", "    }"]
        lines += [line.replace("p->", "to->") for line in self._set(i.instance_type, "p->instance_type")]
        lines += [line.replace("p->", "to->") for line in self._set(i.packet_length, "p->packet_length")]
        if i.priority is not None:
            lines.append(
                "    if (to->priority && (to->instance_type == INGRESS_CLONE || to->instance_type == EGRESS_CLONE)) {"
            )
            lines += self._set(i.priority, "to->priority")
            lines.append("    }")
        lines += self._get("to->priority", i.priority) or ["    to->priority = 0;"]
        return [*lines, "}", ""]


__all__ = ["emit"]
