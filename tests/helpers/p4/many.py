"""P4 programs of any size: one thing of a whole program, many times."""

from __future__ import annotations

AROUND = """#include <core.p4>
#include <v1model.p4>
header data_t {{ bit<32> value; bit<16> kind; bit<16> other; }}
struct headers {{ data_t data; }}
struct meta {{ bit<16> a; }}
parser P(packet_in b, out headers h, inout meta m, inout standard_metadata_t s) {{
    state start {{ b.extract(h.data); transition {transition} }}
}}
control V(inout headers h, inout meta m) {{ apply {{ }} }}
control I(inout headers h, inout meta m, inout standard_metadata_t s) {{
    action forward(bit<9> port) {{ s.egress_spec = port; }}
{before}
    apply {{ {body} }}
}}
control E(inout headers h, inout meta m, inout standard_metadata_t s) {{ apply {{ }} }}
control C(inout headers h, inout meta m) {{ apply {{ }} }}
control D(packet_out b, in headers h) {{ apply {{ b.emit(h.data); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
TABLE = """    table t {{ key = {{ h.data.value : {kind}; }} actions = {{ forward; NoAction; {actions} }} {rest} }}"""


def whole(before: str = "", body: str = "", transition: str = "accept;") -> str:
    return AROUND.format(before=before, body=body, transition=transition)


def many_entries(count: int, kind: str, size: int = 0) -> str:
    """A table `I.t` with `count` constant entries, or none and a size."""
    key = {"exact": "{n}", "lpm": "{n} &&& 0xffffffff", "ternary": "{n} &&& 0xffffffff", "range": "{n} .. {n}"}[kind]
    entries = "\n".join(f"{key.format(n=hex(n))} : forward({n % 500});" for n in range(count))
    rest = f"size = {size};" if size else f"const entries = {{\n{entries}\n}}"
    return whole(TABLE.format(kind=kind, actions="", rest=rest), "t.apply();")


def many_actions(count: int) -> str:
    """A table with `count` actions, and an entry for each."""
    actions = "\n".join(f"    action a{n}() {{ m.a = {n}; }}" for n in range(count))
    entries = "\n".join(f"{n} : a{n}();" for n in range(count))
    listed = " ".join(f"a{n};" for n in range(count))
    table = TABLE.format(kind="exact", actions=listed, rest=f"const entries = {{\n{entries}\n}}")
    return whole(f"{actions}\n{table}", "t.apply();")
