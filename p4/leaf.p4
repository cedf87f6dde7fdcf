// The leaf (T0) of the fabric: hosts below, spines above.
//
//   ingress   classify ─ validate ─ own uSIDs ─ static table ─ admission ┬─────────────────┬ trimmed share ─┐
//                                                                        └ trim ─ last hop ┘                │
//   queues    per port: data in priority 0, control and trimmed in priority 7 ◄─────────────────────────────┘
//   egress    settle account ─ ECN ─ count
//
// The spine is the same without the last hop: it has no hosts.

#include <core.p4>
#include <v1model.p4>

#include "parts/types.p4"
#include "parts/headers.p4"
#include "parts/parser.p4"
#include "parts/checksum.p4"
#include "parts/classify.p4"
#include "parts/time_exceeded.p4"
#include "parts/validate.p4"
#include "parts/segments.p4"
#include "parts/route.p4"
#include "parts/account.p4"
#include "parts/admission.p4"
#include "parts/trim.p4"
#include "parts/last_hop.p4"
#include "parts/trimmed_share.p4"
#include "parts/settle.p4"
#include "parts/ecn.p4"
#include "parts/egress.p4"
#include "parts/deparser.p4"

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Classify() classify;
    Validate() validate;
    Segments() segments;
    Route() route;
    Admission() admission;
    Trim() trim;
    LastHop() last_hop;
    TrimmedShare() trimmed_share;

    apply {
        classify.apply(hdr, meta, standard_metadata);
        validate.apply(hdr, meta, standard_metadata);
        if (!meta.dropped) {
            segments.apply(hdr, meta, standard_metadata);
        }
        if (!meta.dropped) {
            route.apply(hdr, meta, standard_metadata);
        }
        if (!meta.dropped) {
            admission.apply(hdr, meta, standard_metadata);
        }
        if (!meta.dropped) {
            if (meta.over_limit) {
                trim.apply(hdr, meta, standard_metadata);
                last_hop.apply(hdr, meta, standard_metadata);
            }
            trimmed_share.apply(hdr, meta, standard_metadata);
        }
    }
}

V1Switch(PacketParser(), NoChecksum(), SwitchIngress(), SwitchEgress(), IcmpChecksum(), PacketDeparser()) main;
