// Names and sizes that the parts share. Values that an operator may want to change are table entries, not constants.

const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<8> NEXT_HEADER_UDP = 17;
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
