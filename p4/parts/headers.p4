// What the switch reads and may rewrite. Everything behind these headers, any routing header included, is payload.

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv6_t {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr; // F3216: 32-bit block, then six 16-bit uSIDs
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// ICMPv6 Time Exceeded, and the IPv6 header that it quotes: one header, because each costs every packet something.
header time_exceeded_t {
    bit<8> icmp_type;
    bit<8> code;
    bit<16> checksum;
    bit<32> unused;
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    ipv6_t ipv6;
    time_exceeded_t answer; // of this switch; behind it, `udp` is of the packet that it quotes
    udp_t udp;
}

struct metadata_t {
    bool dropped;
    bit<3> traffic_class;
    bit<16> next_hop;
    bit<16> ecmp_group;
    bit<32> ecmp_hash;
    bit<16> udp_src_port; // 0 unless the packet is plain UDP over IPv6
    bit<16> udp_dst_port;
    bit<8> icmp_type; // of ICMPv6 behind the IPv6 header
    bit<2> quote; // what an answer of this switch quotes; 0: the packet is no answer
    // queue admission
    bool limited; // the class has a limit at the egress port, so the packet counts in the queue's account
    bool trimmable;
    bool over_limit;
    bit<16> limit_packets;
    bit<48> patience_us;
    // ECN
    bool ecn_enabled;
    bit<19> ecn_low_packets;
    bit<19> ecn_high_packets;
    bit<19> ecn_draw;
}
