// The leaf of p4/, and its spine, with one part more: packets that ask for it carry a record of each port that they leave by.

#include <core.p4>
#include <v1model.p4>

#include "../../../../p4/parts/types.p4"
#define headers_t plain_headers_t // the parts see the headers of parts/telemetry.p4
#include "../../../../p4/parts/headers.p4"
#undef headers_t
#include "parts/telemetry.p4"
#include "../../../../p4/parts/checksum.p4"
#include "../../../../p4/parts/classify.p4"
#include "../../../../p4/parts/time_exceeded.p4"
#include "../../../../p4/parts/validate.p4"
#include "../../../../p4/parts/segments.p4"
#include "../../../../p4/parts/route.p4"
#include "../../../../p4/parts/account.p4"
#include "../../../../p4/parts/admission.p4"
#include "../../../../p4/parts/trim.p4"
#include "../../../../p4/parts/last_hop.p4"
#include "../../../../p4/parts/trimmed_share.p4"
#include "../../../../p4/parts/settle.p4"
#include "../../../../p4/parts/ecn.p4"
#include "../../../../p4/parts/egress.p4"

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Classify() classify;
    Validate() validate;
    Segments() segments;
    Route() route;
    Admission() admission;
    WithoutRecords() without_records;
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
                without_records.apply(hdr);
                trim.apply(hdr, meta, standard_metadata);
                last_hop.apply(hdr, meta, standard_metadata);
            }
            trimmed_share.apply(hdr, meta, standard_metadata);
        }
    }
}

control RecordingEgress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    SwitchEgress() usual;
    Record() record;

    apply {
        usual.apply(hdr, meta, standard_metadata);
        record.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(PacketParser(), NoChecksum(), SwitchIngress(), RecordingEgress(), IcmpChecksum(), PacketDeparser()) main;
