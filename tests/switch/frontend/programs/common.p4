// What most of these programs share beyond their blocks: Ethernet and IPv4.
#ifndef COMMON_P4
#define COMMON_P4
#include "../../blocks.p4"

#define SWITCH V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main

typedef bit<48> mac_t;
typedef bit<32> ipv4_address_t;
typedef bit<9> port_t;

const bit<16> TYPE_IPV4 = 0x0800;

header ethernet_t { mac_t dst; mac_t src; bit<16> type; }

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> id;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_address_t src;
    ipv4_address_t dst;
}
#endif
