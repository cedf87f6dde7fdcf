"""A whole program for v1model around its parts: the headers, and an ingress control that sends by port 2."""

from __future__ import annotations

EXTRACT = "state start {{ packet.extract(hdr.{}); transition accept; }}"


def around(
    types: str, headers: str, states: str, body: str, *, meta: str = "", before: str = "", local: str = ""
) -> str:
    """`headers` and `meta` are the members of the two structs, `before` uses them, `local` is declared in ingress."""
    return f"""#include <core.p4>
#include <v1model.p4>
{types}
struct headers_t {{ {headers} }}
struct meta_t {{ {meta} }}
{before}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
{states}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
{local}
    apply {{
        sm.egress_spec = 2;
{body}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
