#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> ttl; bit<8> protocol; bit<32> dst; }
header port_t { bit<16> port; }
struct headers_t { ethernet_t ethernet; ip_t ip; port_t udp; port_t tcp; port_t none; }
struct metadata_t { bit<16> port; bool is_ip; bool dropped; }
parser Parses(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        meta.port = hdr.udp.port;
        transition select(hdr.ethernet.type) {
            0x0800: ip;
            default: accept;
        }
    }
    state ip {
        packet.extract(hdr.ip);
        meta.is_ip = true;
        transition select(hdr.ip.protocol) {
            17: udp;
            6: tcp;
            default: accept;
        }
    }
    state udp { packet.extract(hdr.udp); transition accept; }
    state tcp { packet.extract(hdr.tcp); transition accept; }
}
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action forward(bit<9> port) {
        sm.egress_spec = port;
        hdr.ip.ttl = hdr.ip.ttl - 1;
    }
    action rewrite(bit<16> port) { hdr.tcp.port = port; }
    table route {
        key = { hdr.ip.dst: lpm; }
        actions = { forward; NoAction; }
    }
    table exact_tells {
        key = { hdr.tcp.port: exact; }
        actions = { rewrite; NoAction; }
    }
    table validity_tells {
        key = { hdr.tcp.isValid(): exact; hdr.ip.dst: ternary; }
        actions = { rewrite; NoAction; }
    }
    table never {
        key = { hdr.none.port: ternary; }
        actions = { NoAction; }
    }
    apply {
        // Each of these tells of the header, so nothing is said.
        if (hdr.udp.isValid() && hdr.udp.port == 5) { hdr.ip.ttl = 1; }
        if (meta.is_ip) { hdr.ip.ttl = 2; }
        if (hdr.ethernet.type == 0x0800) { hdr.ip.ttl = 3; }
        if (!hdr.ip.isValid()) { meta.dropped = true; }
        if (!meta.dropped) { hdr.ip.ttl = 4; }
        meta.port = hdr.udp.isValid() ? hdr.udp.port : 0;
        exact_tells.apply();
        validity_tells.apply();
        // And these do not.
        route.apply();
        if (hdr.tcp.port == 7 && hdr.tcp.isValid()) { meta.port = 1; }
        never.apply();
        hdr.tcp.setInvalid();
        meta.port = hdr.tcp.port;
    }
}
control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        ip_t local;
        local.ttl = 1;
        local.setValid();
        local.ttl = 2;
    }
}
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(Parses(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
