// IPv6 has no header checksum, and UDP's is the endpoints' business (RFC 8986 leaves everything inside untouched).

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
