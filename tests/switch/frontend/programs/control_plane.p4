// What P4Info has to tell: new types, ids, names, documentation, digests, value sets, direct meters, hidden things.
#include "common.p4"

@p4runtime_translation("example.org/port", 32) type bit<9> logical_port_t;
@p4runtime_translation("example.org/vrf", string) type bit<10> vrf_t;
type bit<16> plain_t;
enum bit<4> level_t { LOW = 1, HIGH = 8 }

header probe_t { bit<16> kind; }
struct learned_t { mac_t src; port_t port; level_t level; }
struct metadata_t { logical_port_t port; vrf_t vrf; plain_t plain; level_t level; bit<2> color; }
struct headers_t { ethernet_t ethernet; probe_t probe; }
@controller_header("packet_in")
header to_controller_t { logical_port_t ingress; @id(7) bit<7> reason; @hidden bit<7> padding; bit<1> flag; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) probe_types;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            probe_types: probe;
            0x0800: probe;
            default: accept;
        }
    }
    EXTRACT(probe, probe, accept)
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @brief("Colours") direct_meter<bit<2>>(MeterType.bytes) colors;
    direct_counter(CounterType.bytes) volumes;
    meter(16, MeterType.packets) shaper;
    @id(0x99) register<bit<48>>(32) last_seen;

    @brief("Goes out") @description("Sends to a logical port")
    action out_of(@id(3) logical_port_t port, @brief("The level") level_t level) {
        meta.port = port;
        meta.level = level;
        colors.read(meta.color);
        shaper.execute_meter(3, meta.color);
    }
    action into(vrf_t vrf, plain_t plain) {
        meta.vrf = vrf;
        meta.plain = plain;
    }
    @name(".drop_everywhere") action drop() { mark_to_drop(sm); }
    @id(0x123456) @name("the.ports") @custom(1, "two")
    table ports {
        key = {
            meta.port: exact @id(5) @name("port");
            meta.vrf: ternary;
            meta.level: exact;
            hdr.ethernet.src: lpm @description("The sender");
        }
        actions = { out_of; @tableonly into; @defaultonly drop; }
        const default_action = drop();
        meters = colors;
        counters = volumes;
        support_timeout = true;
    }
    @hidden table internal {
        actions = { drop; NoAction; }
        const default_action = NoAction();
    }
    apply {
        last_seen.write(0, sm.ingress_global_timestamp);
        ports.apply();
        internal.apply();
        if (meta.color == 2) {
            digest<learned_t>(1, { hdr.ethernet.src, sm.ingress_port, meta.level });
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
@pkginfo(name="control_plane", version="3", organization="example")
SWITCH;
