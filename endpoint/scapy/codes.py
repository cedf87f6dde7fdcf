"""Names of the values in the headers, and the UDP ports on which MRC is read."""

from __future__ import annotations

from endpoint.nic import dialect as dialects

UDP_PORTS = dialects.UDP_PORTS

OPCODES = {
    0xC6: "WRITE_FIRST",
    0xC7: "WRITE_MIDDLE",
    0xC8: "WRITE_LAST",
    0xC9: "WRITE_LAST_IMM",
    0xCA: "WRITE_ONLY",
    0xCB: "WRITE_ONLY_IMM",
    0xD1: "ACKNOWLEDGE",
    0xD8: "ENDPOINT_REQUEST",
    0xD9: "ENDPOINT_RESPONSE",
    0xDC: "SACK",
    0xDD: "NACK",
    0xDE: "PROBE",
    0x06: "RC_WRITE_FIRST",
    0x07: "RC_WRITE_MIDDLE",
    0x08: "RC_WRITE_LAST",
    0x09: "RC_WRITE_LAST_IMM",
    0x0A: "RC_WRITE_ONLY",
    0x0B: "RC_WRITE_ONLY_IMM",
    0x11: "RC_ACKNOWLEDGE",
    0x81: "CNP",
}
NACK_REASONS = {
    0x01: "TRIMMED",
    0x02: "TRIMMED_LASTHOP",
    0x06: "NO_BITMAP",
    0x07: "NO_PKT_BUFFER",
    0x0A: "NO_RESOURCE",
    0x0B: "PSN_OOR_WINDOW",
    0x19: "UNEXP_EVENT",
}
ENDPOINT_OPS = {0: "PORT_STATUS_UPDATE", 1: "EV_PROBE"}
MARKS = {0: "NONE", 1: "SKIP_ONCE", 2: "ALWAYS_SKIP", 3: "RESERVED"}
