// The leaf of p4/, with one part more: before the static table, a packet with several ways up takes the one with the shortest queue.

#include <core.p4>
#include <v1model.p4>

#include "../../../../p4/parts/types.p4"
#include "../../../../p4/parts/headers.p4"
#include "../../../../p4/parts/parser.p4"
#include "../../../../p4/parts/checksum.p4"
#include "../../../../p4/parts/classify.p4"
#include "../../../../p4/parts/time_exceeded.p4"
#include "../../../../p4/parts/validate.p4"
#include "../../../../p4/parts/segments.p4"
#include "../../../../p4/parts/route.p4"
#include "../../../../p4/parts/account.p4"
#include "parts/adaptive.p4"
#include "../../../../p4/parts/admission.p4"
#include "../../../../p4/parts/trim.p4"
#include "../../../../p4/parts/last_hop.p4"
#include "../../../../p4/parts/trimmed_share.p4"
#include "../../../../p4/parts/settle.p4"
#include "../../../../p4/parts/ecn.p4"
#include "../../../../p4/parts/egress.p4"
#include "../../../../p4/parts/deparser.p4"

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Classify() classify;
    Validate() validate;
    Segments() segments;
    Adaptive() adaptive;
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
            adaptive.apply(hdr, meta, standard_metadata);
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
