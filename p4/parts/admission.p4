// May this packet join its queue as it is? Limits per egress port and class, in packets waiting in the queue.
//
// A packet counted here that never reaches egress (tail drop, port down, wiped queue) would leave the account too high for
// ever. Two things heal it: egress overwrites the account with the depth seen at dequeue, and an account that nothing has
// settled for `patience_us` is not believed, since a queue with packets in it is served.

control Admission(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) queue_limit_drops;

    action unlimited() { }

    action trim_beyond(bit<16> packets, bit<32> patience_us) {
        meta.limited = true;
        meta.trimmable = true;
        meta.limit_packets = packets;
        meta.patience_us = (bit<48>)patience_us;
    }

    action drop_beyond(bit<16> packets, bit<32> patience_us) {
        meta.limited = true;
        meta.limit_packets = packets;
        meta.patience_us = (bit<48>)patience_us;
    }

    action raise_account() {
        bit<64> account;
        bit<32> index = (bit<32>)(standard_metadata.egress_spec ++ standard_metadata.priority);
        queue_account.read(account, index);
        bit<48> settled_us = account[63:16];
        bit<16> waiting = account[15:0];
        bit<48> now_us = standard_metadata.ingress_global_timestamp;
        bool stale = now_us > settled_us + meta.patience_us;
        settled_us = stale ? now_us : settled_us;
        waiting = stale ? 16w0 : waiting;
        meta.over_limit = waiting >= meta.limit_packets;
        waiting = meta.over_limit ? waiting : waiting + 1;
        queue_account.write(index, settled_us ++ waiting);
    }

    action drop_queue_limit() {
        queue_limit_drops.count((bit<32>)(standard_metadata.egress_spec ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    table queue_limit {
        key = {
            standard_metadata.egress_spec: exact @name("egress_port");
            meta.traffic_class: exact @name("traffic_class");
        }
        actions = {
            unlimited;
            trim_beyond;
            drop_beyond;
        }
        default_action = unlimited();
        size = PORT_CLASSES;
    }

    apply {
        queue_limit.apply();
        if (meta.limited) {
            raise_account();
            if (meta.over_limit && !meta.trimmable) {
                drop_queue_limit();
            }
        }
    }
}
