// A program with one of everything that P4Runtime can program, and packets that show it.
#include "../blocks.p4"

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> reason; }

@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> pad; }
struct headers_t { packet_out_t packet_out; packet_in_t packet_in; ethernet_t ethernet; }
struct metadata_t { bit<2> colour; bit<16> flow; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            510: from_controller;
            default: ethernet;
        }
    }
    EXTRACT(from_controller, packet_out, ethernet)
    EXTRACT(ethernet, ethernet, accept)
}

EMPTY_CHECKSUM(V, headers_t, metadata_t)

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) host_hits;
    direct_meter<bit<2>>(MeterType.packets) acl_meter;
    counter(4, CounterType.packets) seen;
    meter(4, MeterType.bytes) cap;
    register<bit<32>>(8) last_type;
    action_selector(HashAlgorithm.crc16, 32w16, 32w14) spread;
    action_profile(8) hops;

    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) { standard.egress_spec = port; }
    action count_and_forward(bit<9> port) { standard.egress_spec = port; host_hits.count(); }
    action to_controller(bit<7> reason) {
        standard.egress_spec = 510;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard.ingress_port;
        hdr.packet_in.reason = reason;
    }
    action flood(bit<16> group) { standard.mcast_grp = group; }
    action permit() { acl_meter.read(meta.colour); }
    action deny() { mark_to_drop(standard); acl_meter.read(meta.colour); }

    table hosts {
        key = { hdr.ethernet.dst : exact @name("dst"); }
        actions = { count_and_forward; @tableonly drop; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = host_hits;
        size = 16;
    }
    table routes {
        key = { hdr.ethernet.src : lpm @name("src"); }
        actions = { forward; to_controller; flood; drop; }
        default_action = drop();
        size = 16;
    }
    table acl {
        key = {
            hdr.ethernet.src : ternary @name("src");
            hdr.ethernet.type : range @name("type");
            standard.ingress_port : optional @name("port");
        }
        actions = { permit; deny; }
        default_action = permit();
        meters = acl_meter;
        size = 16;
    }
    table ecmp {
        key = { hdr.ethernet.type : exact @name("type"); meta.flow : selector; }
        actions = { forward; NoAction; }
        implementation = spread;
        size = 8;
    }
    table indirect {
        key = { hdr.ethernet.type : exact @name("type"); }
        actions = { forward; NoAction; }
        implementation = hops;
        size = 8;
    }
    table fixed {
        key = { hdr.ethernet.type : exact @name("type"); }
        actions = { to_controller; NoAction; }
        const entries = { 0x88B5 : to_controller(7w9); }
        const default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            seen.count((bit<32>)standard.ingress_port & 3);
            last_type.write(0, (bit<32>)hdr.ethernet.type);
            meta.flow = hdr.ethernet.src[15:0];
            if (!fixed.apply().hit) {
                if (!hosts.apply().hit) {
                    if (!ecmp.apply().hit) {
                        if (!indirect.apply().hit) { routes.apply(); }
                    }
                }
                acl.apply();
            }
        }
    }
}

EMPTY_CONTROL(E, headers_t, metadata_t)
EMPTY_CHECKSUM(C, headers_t, metadata_t)
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.packet_in); packet.emit(hdr.ethernet); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
