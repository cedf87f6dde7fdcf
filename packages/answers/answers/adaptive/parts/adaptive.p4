// Of the ports that lead to a prefix, each packet takes the one whose data queue is shortest, by the program's own account.
//
// The ports of a group are neighbours: `first_port` and up, at most eight; bit n of `live` says that the nth is in use. Packets
// are compared from a random port of the group on, so that queues of equal length share alike. A prefix that is not here, or has
// no live port, is looked up in the static table.

control Adaptive(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    bit<16> group_first;
    bit<16> group_count;
    bit<16> group_live;
    bit<48> group_patience_us;
    bit<16> group_start;

#define LOOK(n) \
        at = group_start + n; \
        at = at >= group_count ? at - group_count : at; \
        port = (bit<9>)(group_first + at); \
        queue_account.read(account, (bit<32>)(port ++ standard_metadata.priority)); \
        waiting = standard_metadata.ingress_global_timestamp > account[63:16] + group_patience_us ? 16w0 : account[15:0]; \
        better = n < group_count && (group_live >> at & 1) == 1 && waiting < shortest; \
        shortest = better ? waiting : shortest; \
        meta.next_hop = better ? (bit<16>)port : meta.next_hop;

    action shortest_queue(bit<16> first_port, bit<16> count, bit<16> live, bit<32> patience_us) {
        group_first = first_port;
        group_count = count;
        group_live = live;
        group_patience_us = (bit<48>)patience_us;
    }

    action choose() {
        bit<64> account;
        bit<16> at;
        bit<9> port;
        bit<16> waiting;
        bool better;
        bit<16> shortest = 0xffff;
        random(group_start, 16w0, group_count - 1);
        LOOK(16w0)
        LOOK(16w1)
        LOOK(16w2)
        LOOK(16w3)
        LOOK(16w4)
        LOOK(16w5)
        LOOK(16w6)
        LOOK(16w7)
    }

    table adaptive_route {
        key = {
            hdr.ipv6.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            shortest_queue;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = ROUTES;
    }

    apply {
        if (meta.next_hop == NO_NEXT_HOP && adaptive_route.apply().hit) {
            choose();
        }
    }
}
