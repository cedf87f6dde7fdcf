// Names and sizes that the parts share. Values that an operator may want to change are table entries, not constants.

const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<8> NEXT_HEADER_UDP = 17;
const bit<8> NEXT_HEADER_ICMPV6 = 58;
const bit<8> ICMPV6_TIME_EXCEEDED = 3;
const bit<8> ICMPV6_REDIRECT = 137;
const bit<4> IP_VERSION_6 = 6;

// Traffic classes. The table dscp_to_class maps DSCPs to them; queue_limit says what each may do at each port.
const bit<3> CLASS_NO_TRIM = 0;
const bit<3> CLASS_TRIMMED = 3;
const bit<3> CLASS_TRIMMED_LAST_HOP = 4;

const bit<16> NO_NEXT_HOP = 0;
const bit<2> ECN_NOT_CAPABLE = 0;
const bit<2> ECN_CONGESTION = 3;
const bit<2> METER_RED = 2;

// Bytes before the payload that the IPv6 payload length counts.
const bit<16> ETHERNET_AND_IPV6_BYTES = 54;
const bit<16> UDP_BYTES = 8;
const bit<16> TIME_EXCEEDED_BYTES = 48; // ICMPv6's header, and the IPv6 header that it quotes
const bit<2> QUOTE_PACKET = 1;
const bit<2> QUOTE_HEADERS = 2;
const bit<16> QUOTED_BYTES_MAX = 1192; // behind that: IPv6's minimum MTU, 1280, less an IPv6 header and these 48

// Table and array sizes. 512 ports is the largest switch of the fabrics that this models.
#define PORTS 512
#define PORT_CLASSES 4096
#define PORT_QUEUES 4096
#define DSCPS 64
#define MY_SIDS 2048
#define ROUTES 16384
#define NEXT_HOPS 2048
#define ECMP_GROUPS 1024
#define ECMP_MEMBERS 4096
