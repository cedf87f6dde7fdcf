// Trimmed packets ride above data; a meter per egress port holds them to a share, so that data still moves under incast.
// The meter counts packets: BMv2 would count the bytes of a packet before it was trimmed.

control TrimmedShare(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    meter(PORTS, MeterType.packets) trimmed_meter;
    counter(PORT_CLASSES, CounterType.packets) trimmed_share_drops;

    action drop_trimmed_share() {
        trimmed_share_drops.count((bit<32>)(standard_metadata.egress_spec ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    apply {
        if (meta.traffic_class == CLASS_TRIMMED || meta.traffic_class == CLASS_TRIMMED_LAST_HOP) {
            bit<2> color = 0;
            trimmed_meter.execute_meter((bit<32>)standard_metadata.egress_spec, color);
            if (color == METER_RED) {
                drop_trimmed_share();
            }
        }
    }
}
