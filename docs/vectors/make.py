"""The packet vectors of this folder: one capture and one file of expectations per rule.

    python docs/vectors/make.py [--to docs/vectors]

Frames come from the plain codecs (`endpoint/nic/frame.py`, `endpoint/nic/wire.py`) and from this list of cases. No NIC
takes part: the answers are written here by the rule, and tests hold the lab's NIC to the vectors.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from cli.capturing import COMMENT, FLAGS, interface, option, packet, section
from endpoint.nic import frame, icrc, wire
from endpoint.nic.wire import Opcode

HERE = Path(__file__).parent
IN, OUT = 1, 2
TRIM_BYTES = 128
SETUP: dict[str, Any] = json.loads((HERE / "setup.json").read_text())
DEVICE, TESTER = SETUP["device"], SETUP["tester"]
PMTU, VA, RKEY = SETUP["pmtu"], SETUP["memory"]["va"], SETUP["memory"]["rkey"]
EVS = {path["ev"]: path["port"] for path in SETUP["paths"]}
EV = 0x0001_0001
DSCP = SETUP["dscp"]


@dataclass
class Vector:
    """A vector: the device, its inputs and the answers that it must give, in order."""

    name: str
    title: str
    rule: str
    given: dict[str, Any]
    frames: list[tuple[bytes, dict[str, Any]]] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    """What the device's memory holds afterwards: offset and content; all other bytes are 0."""
    completions: list[dict[str, Any]] = field(default_factory=list)

    def get(self, data: bytes, note: str, fields: dict[str, Any]) -> None:
        """A frame that the tester sends."""
        self.frames.append((data, {"direction": "in", "note": note, "fields": fields}))

    def expect(self, data: bytes, note: str, fields: dict[str, Any], also: dict[str, Any] | None = None) -> None:
        """A frame that the device must send: the fields are required, all else in the capture is an example."""
        self.frames.append((data, {"direction": "out", "note": note, "fields": fields, **(also or {})}))


def sealed(
    transport: bytes, *, ev: int, dscp: str, to_device: bool, marked: bool = False, udp_port: int = 4791
) -> bytes:
    """A whole frame between the tester and the device, by the port of the EV."""
    device, tester = (one["ports"][EVS[ev] - 1] for one in (DEVICE, TESTER))
    source, target = (tester, device) if to_device else (device, tester)
    source_host, target_host = (TESTER, DEVICE) if to_device else (DEVICE, TESTER)
    front = frame.headers(
        ether_dst=bytes.fromhex(target["mac"].replace(":", "")),
        ether_src=bytes.fromhex(source["mac"].replace(":", "")),
        outer=(packed(source["address"]), packed(target_host["usid_address"])),
        src=packed(source_host["address"]),
        dst=packed(target_host["address"]),
        traffic_class=DSCP[dscp] << 2 | (frame.ECN_MARKED if marked else frame.ECN_CAPABLE),
        ev=ev,
        udp_dport=udp_port,
        length=len(transport) + icrc.SIZE,
    )
    return frame.seal(front, transport)


def packed(address: str) -> bytes:
    return IPv6Address(address).packed


def payload(seed: int, size: int = PMTU) -> bytes:
    """Bytes that differ from packet to packet."""
    return bytes((seed * 37 + place) & 0xFF for place in range(size))


def write(
    opcode: Opcode, psn: int, at: int, data: bytes, total: int, *, msn: int = 0, flags: int = 0, rkey: int = RKEY,
    immediate: int | None = None, to_device: bool = True,
) -> tuple[bytes, dict[str, Any]]:  # fmt: skip
    """BTH to payload of a write, `at` bytes into the registered memory, and the fields that readers must find."""
    rqmsn = msn if immediate is not None else 0
    bth = wire.Bth(opcode, DEVICE["qpn"] if to_device else TESTER["qpn"], psn & 0xFFFFFF, flags)
    body = bth.pack() + wire.Meth(rqmsn, msn).pack() + wire.Reth(VA + at, rkey, total).pack()
    body += b"" if immediate is None else wire.IMMEDIATE.pack(immediate)
    found = {"opcode": opcode.name, "psn": psn & 0xFFFFFF, "va": VA + at, "rkey": rkey, "length": total}
    return body + data, found


def sack(cack: int, *, offset: int = 1, bitmap: int = 0, ev: int = EV, mark: int = 0, probe: int | None = None,
         answer: int | None = None, units: int | None = None,
         to_device: bool = False) -> tuple[bytes, dict[str, Any]]:  # fmt: skip
    """BTH to CC_STATE of a SACK. `units`: the bytes received that it must tell, in units of 256."""
    told = probe if probe is not None else answer if answer is not None else 0
    signed = told - 0x10000 if told & 0x8000 else told
    cack &= 0xFFFFFF
    bth = wire.Bth(Opcode.SACK, DEVICE["qpn"] if to_device else TESTER["qpn"], cack)
    seth = wire.Seth(cack, offset, bitmap, ev, mark, probe is not None, signed)
    fields: dict[str, Any] = {"opcode": "SACK", "psn": cack, "cack_psn": cack, "entropy": ev, "mark": mark}
    fields |= {"probe_response": probe is not None}
    fields["received"] = [(cack + offset + bit) & 0xFFFFFF for bit in range(64) if bitmap >> bit & 1]
    if probe is not None:
        fields["probe_id"] = probe
    if units is not None:
        fields["rcvd_bytes"] = units
    return bth.pack() + seth.pack() + wire.CcState(rcvd_units=units or 0).pack(), fields


def acknowledge(psn: int, msn: int, syndrome: int = 0x1F, *, to_device: bool = False) -> tuple[bytes, dict[str, Any]]:
    bth = wire.Bth(Opcode.ACKNOWLEDGE, DEVICE["qpn"] if to_device else TESTER["qpn"], psn & 0xFFFFFF)
    fields = {"opcode": "ACKNOWLEDGE", "psn": psn & 0xFFFFFF, "syndrome": syndrome, "msn": msn}
    return bth.pack() + wire.Aeth(syndrome, msn).pack(), fields


def nack(psn: int, reason: wire.NackReason, *, ev: int = EV, to_device: bool = False) -> tuple[bytes, dict[str, Any]]:
    psn &= 0xFFFFFF
    bth = wire.Bth(Opcode.NACK, DEVICE["qpn"] if to_device else TESTER["qpn"], psn)
    fields = {"opcode": "NACK", "psn": psn, "nack_psn": psn, "reason": int(reason), "entropy": ev}
    return bth.pack() + wire.Neth(reason, psn, ev).pack(), fields


def data_in(built: tuple[bytes, dict[str, Any]], **changes: Any) -> tuple[bytes, dict[str, Any]]:
    """A data packet to the device, and its fields with its EV."""
    ev = changes.pop("ev", EV)
    return sealed(built[0], ev=ev, dscp=changes.pop("dscp", "trimmable"), to_device=True, **changes), {
        **built[1],
        "ev": ev,
    }


def control(built: tuple[bytes, dict[str, Any]], to_device: bool = False, ev: int = EV) -> tuple[bytes, dict[str, Any]]:
    """A control packet; of the device's, the EV is its own choice."""
    return sealed(built[0], ev=ev, dscp="control", to_device=to_device), built[1]


def trimmed(data: bytes, dscp: str) -> bytes:
    """A frame as a switch leaves it that trims: cut, with another DSCP, lengths as they were."""
    first = struct.unpack_from("!I", data, frame.ETHERNET)[0]
    first = first & ~(0x3F << 22) | DSCP[dscp] << 22
    return data[: frame.ETHERNET] + struct.pack("!I", first) + data[frame.ETHERNET + 4 : TRIM_BYTES]


def responder(name: str, title: str, rule: str, psn: int = 1000, **given: Any) -> Vector:
    return Vector(name, title, rule, {"role": "responder", "expected_psn": psn, **given})


def requester(name: str, title: str, rule: str, packets: int, psn: int = 5000) -> Vector:
    """The device posts one write of so many full packets; the capture begins with them."""
    case = Vector(name, title, rule, {"role": "requester", "first_psn": psn, "packets": packets, "evs": [EV]})
    for number in range(packets):
        opcode = Opcode.WRITE_ONLY if packets == 1 else Opcode.WRITE_MIDDLE
        if packets > 1:
            opcode = {0: Opcode.WRITE_FIRST, packets - 1: Opcode.WRITE_LAST}.get(number, opcode)
        flags = wire.ACK_REQUEST if number == packets - 1 else 0
        at = number * PMTU
        body, fields = write(opcode, psn + number, at, payload(number), packets * PMTU, flags=flags, to_device=False)
        data = sealed(body, ev=EV, dscp="trimmable", to_device=False)
        case.expect(data, "a packet of the write", {**fields, "retransmission": False})
    return case


def receiving() -> Iterable[Vector]:
    """Vectors of a device that receives data."""
    rule = (
        "Place each packet at its VA; acknowledge when asked. Of the bytes received, count the length of each UDP "
        "datagram and 40 (UEC 3.6.13.9): three of 300 + 40, in units of 256 and rounded up."
    )
    case = responder("in-order", "A message of three packets", rule)
    kinds = (Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST)
    for number, opcode in enumerate(kinds):
        flags = wire.ACK_REQUEST if number == 2 else 0
        case.get(*told(data_in(write(opcode, 1000 + number, number * PMTU, payload(number), 3 * PMTU, flags=flags))))
        case.memory.append({"offset": number * PMTU, "hex": payload(number).hex()})
    case.expect(*told(control(sack(1002, units=4))))
    case.expect(*told(control(acknowledge(1002, 1))))
    yield case

    for name, dscp, reason, where in (
        ("trimmed", "trimmed", wire.NackReason.TRIMMED, "inside the fabric"),
        ("trimmed-last-hop", "trimmed_lasthop", wire.NackReason.TRIMMED_LASTHOP, "at the last hop"),
    ):
        title = f"A packet that was trimmed {where}"
        case = responder(name, title, "Write nothing; refuse the PSN with the reason and the EV of the packet.")
        whole, fields = data_in(write(Opcode.WRITE_FIRST, 1000, 0, payload(0), 2 * PMTU))
        fields = {key: fields[key] for key in ("opcode", "psn", "ev")} | {"trimmed": True}
        case.get(trimmed(whole, dscp), "the first 128 bytes of a write, its lengths unchanged", fields)
        case.expect(*told(control(nack(1000, reason))))
        yield case

    yield from duplicates()
    yield holes("holes", "The specification's example: 5 and 8 of 12 are lost", 0, 12, (5, 8))
    yield holes("masked-psn", "A hole where PSNs wrap at 2^24", 0xFFFFFE, 4, (1,))

    case = responder("marked", "A packet with Congestion Experienced", "Answer at once: this EV is to be skipped once.")
    case.get(*told(data_in(write(Opcode.WRITE_FIRST, 1000, 0, payload(0), 2 * PMTU), marked=True)))
    case.memory.append({"offset": 0, "hex": payload(0).hex()})
    case.expect(*told(control(sack(1000, mark=wire.PathMark.SKIP_ONCE))))
    yield case

    case = responder("probe", "A reliability probe", "Answer with a SACK that carries the probe's id; use no PSN.")
    case.get(*told(data_in(write(Opcode.WRITE_LAST, 1001, PMTU, payload(1), 2 * PMTU))))
    case.memory.append({"offset": PMTU, "hex": payload(1).hex()})
    bth = wire.Bth(Opcode.PROBE, DEVICE["qpn"], 1000)
    case.get(
        *told(data_in((bth.pack() + wire.Peth(0x8001).pack(), {"opcode": "PROBE", "psn": 1000, "probe_id": 0x8001})))
    )
    case.expect(*told(control(sack(999, bitmap=0b10, probe=0x8001))))
    ack = control(acknowledge(999, 0))
    case.expect(ack[0], "a probe may also bring the last ACK again", ack[1], {"optional": True})
    yield case

    case = responder(
        "other-port", "A write to UDP port 4971", "Accept both ports that readers of the specification name."
    )
    only = write(Opcode.WRITE_ONLY, 1000, 0, payload(0), PMTU, flags=wire.ACK_REQUEST)
    case.get(*told(data_in(only, udp_port=4971)))
    case.memory.append({"offset": 0, "hex": payload(0).hex()})
    case.expect(*told(control(sack(1000))))
    case.expect(*told(control(acknowledge(1000, 1))))
    yield case
    yield from refusing()


def duplicates() -> Iterable[Vector]:
    """Vectors of a device that receives a packet twice."""
    case = responder("duplicate", "A packet that has arrived before", "Write nothing; send SACK and ACK again.")
    for seed in (0, 1):
        only = write(Opcode.WRITE_ONLY, 1000, 0, payload(seed), PMTU, flags=wire.ACK_REQUEST)
        case.get(*told(data_in(only), "the second copy has other bytes, to show whether memory is written" * seed))
        case.expect(*told(control(sack(1000))))
        case.expect(*told(control(acknowledge(1000, 1))))
    case.memory.append({"offset": 0, "hex": payload(0).hex()})
    yield case

    case = responder("duplicate-ahead", "A second copy beyond a hole", "Write nothing; send a SACK and no ACK.")
    for seed in (0, 1):
        only = write(Opcode.WRITE_ONLY, 1001, PMTU, payload(seed), PMTU, msn=1, flags=wire.ACK_REQUEST)
        case.get(*told(data_in(only)))
        case.expect(*told(control(sack(999, bitmap=0b10))))
    case.memory.append({"offset": PMTU, "hex": payload(0).hex()})
    yield case


EMPTY = (
    "Deliver the immediate; write nothing. InfiniBand's C9-88: for each zero-length RDMA WRITE request the R_Key shall "
    "not be validated, even if the request includes Immediate data."
)


def refusing() -> Iterable[Vector]:
    """Vectors of packets that must not be placed, of immediates and of endpoint operations."""
    only = write(Opcode.WRITE_ONLY, 1000, 0, payload(0), PMTU, flags=wire.ACK_REQUEST)
    case = responder("wrong-icrc", "A packet with a wrong ICRC", "Drop it in silence.")
    data, fields = data_in(only)
    case.get(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "one bit of the payload is flipped", fields)
    case.frames[-1][1]["icrc_right"] = False
    yield case

    case = responder(
        "outside-window", "A PSN beyond the window", "Drop it in silence (rule 6; a NACK is the other reading)."
    )
    case.get(*told(data_in(write(Opcode.WRITE_ONLY, 1000 + 128 * SETUP["mpr"], 0, payload(0), PMTU))))
    yield case

    case = responder("wrong-rkey", "A write with an unknown rkey", "Answer NAK Remote Access Error; the QP ends.")
    case.get(*told(data_in(write(Opcode.WRITE_ONLY, 1000, 0, payload(0), PMTU, rkey=RKEY ^ 1))))
    nak = control(acknowledge(999, 0, wire.Syndrome.NAK_REMOTE_ACCESS_ERROR))
    case.expect(*nak[:1], "one copy per port is fine", nak[1], {"copies": True})
    yield case

    case = responder(
        "immediates",
        "Two writes with immediate, the second first",
        "Deliver immediates in the sender's order.",
        receives=2,
    )
    for number in (1, 0):
        flags = wire.ACK_REQUEST
        built = write(
            Opcode.WRITE_ONLY_IMM, 1000 + number, number * PMTU, payload(number), PMTU, msn=number, flags=flags,
            immediate=0xA0 + number,
        )  # fmt: skip
        case.get(*told(data_in(built)))
        case.expect(*told(control(sack(999, bitmap=0b10) if number else sack(1001))))
    case.expect(*told(control(acknowledge(1001, 2))))
    case.memory = [{"offset": number * PMTU, "hex": payload(number).hex()} for number in (0, 1)]
    case.completions = [{"immediate": 0xA0 + number, "bytes": PMTU} for number in (0, 1)]
    yield case

    case = responder("empty", "A write with immediate of no bytes", EMPTY, receives=1)
    built = write(
        Opcode.WRITE_ONLY_IMM, 1000, 1 << 40, b"", 0, flags=wire.ACK_REQUEST, rkey=RKEY ^ 1, immediate=0xC0FFEE
    )
    case.get(*told(data_in(built), "neither its address nor its rkey is one of the device's"))
    case.expect(*told(control(sack(1000))))
    case.expect(*told(control(acknowledge(1000, 1))))
    case.completions = [{"immediate": 0xC0FFEE, "bytes": 0}]
    yield case

    for name, op, title in (
        ("port-status", wire.EndpointOp.PORT_STATUS_UPDATE, "News that the tester's port 2 is down"),
        ("ev-probe", wire.EndpointOp.EV_PROBE, "A probe of an EV"),
    ):
        case = responder(name, title, "Answer with the operation, the request's id and its timestamp.")
        mask = 0b01 if op is wire.EndpointOp.PORT_STATUS_UPDATE else 0b11
        request = wire.Bth(Opcode.ENDPOINT_REQUEST, wire.ENDPOINT_QPN, 0x0777).pack()
        request += wire.Erth(op, mask, tx_timestamp=0x1234).pack()
        ev = 1  # of port 1, which stays up
        fields = {"opcode": "ENDPOINT_REQUEST", "psn": 0x0777, "op": int(op), "port_status_mask": mask}
        case.get(*told((sealed(request, ev=ev, dscp="control", to_device=True), {**fields, "ev": ev})))
        response = wire.Bth(Opcode.ENDPOINT_RESPONSE, wire.ENDPOINT_QPN, 0x0777).pack()
        response += wire.Eeth(op, 0b11, tx_timestamp=0x1234).pack()
        fields = {"opcode": "ENDPOINT_RESPONSE", "psn": 0x0777, "op": int(op), "tx_timestamp": 0x1234}
        case.expect(*told(control((response, fields), ev=ev)))
        yield case


def holes(name: str, title: str, first: int, count: int, lost: tuple[int, ...]) -> Vector:
    """A message of which some packets are missing; the last packet asks for a SACK."""
    case = responder(name, title, "Say by one bit for each PSN what has arrived above the cumulative PSN.", first)
    arrived = [number for number in range(count) if number not in lost]
    for number in arrived:
        last = number == count - 1
        opcode = Opcode.WRITE_LAST if last else Opcode.WRITE_MIDDLE if number else Opcode.WRITE_FIRST
        flags = wire.ACK_REQUEST if last else 0
        built = write(opcode, first + number, number * PMTU, payload(number), count * PMTU, flags=flags)
        case.get(*told(data_in(built)))
        case.memory.append({"offset": number * PMTU, "hex": payload(number).hex()})
    bitmap = sum(1 << number - lost[0] for number in arrived if number > lost[0])
    case.expect(*told(control(sack(first + lost[0] - 1, bitmap=bitmap))))
    return case


def sending() -> Iterable[Vector]:
    """Vectors of a device that sends data."""
    for name, reason in (("resend", wire.NackReason.TRIMMED), ("resend-last-hop", wire.NackReason.TRIMMED_LASTHOP)):
        case = requester(name, f"A NACK with reason {reason.name}", "Send that packet again at once, RTX set.", 3)
        case.get(*told(control(nack(5001, reason, to_device=True), to_device=True)))
        flags = wire.RETRANSMISSION
        body, fields = write(Opcode.WRITE_MIDDLE, 5001, PMTU, payload(1), 3 * PMTU, flags=flags, to_device=False)
        data = sealed(body, ev=EV, dscp="trimmable_retransmit", to_device=False)
        case.expect(data, "the same bytes again, RTX set", {**fields, "retransmission": True})
        yield case

    case = requester("late-nack", "A NACK of a packet that is acknowledged", "Ignore it: the packet has arrived.", 2)
    case.get(*told(control(sack(5001, to_device=True), to_device=True)))
    case.get(*told(control(acknowledge(5001, 1, to_device=True), to_device=True)))
    case.get(*told(control(nack(5000, wire.NackReason.TRIMMED, to_device=True), to_device=True)))
    case.completions = [{"status": "success"}]
    yield case

    case = requester("fatal-nack", "A NACK with reason UNEXP_EVENT", "End the QP; send nothing again.", 2)
    case.get(*told(control(nack(5000, wire.NackReason.UNEXP_EVENT, to_device=True), to_device=True)))
    case.completions = [{"status": "error"}]
    yield case

    case = requester("access-error", "A NAK Remote Access Error", "End the QP with an error.", 1)
    nak = acknowledge(4999, 0, wire.Syndrome.NAK_REMOTE_ACCESS_ERROR, to_device=True)
    case.get(*told(control(nak, to_device=True)))
    case.completions = [{"status": "error"}]
    yield case


def told(built: tuple[bytes, dict[str, Any]], note: str = "") -> tuple[bytes, str, dict[str, Any]]:
    """A frame with a note and its fields."""
    return built[0], note or built[1]["opcode"], built[1]


def capture(case: Vector) -> bytes:
    """The pcapng of a case: one Ethernet interface, directions as the device sees them, notes as comments."""
    found = section() + interface("device")
    for number, (data, meta) in enumerate(case.frames):
        options = option(COMMENT, f"{meta['direction']}: {meta['note']}".encode())
        options += option(FLAGS, struct.pack("<I", IN if meta["direction"] == "in" else OUT)) + bytes(4)
        found += packet(0, number * 1000, data, len(data), options)
    return found


def expectations(case: Vector) -> str:
    """The file beside the capture."""
    frames = [{"frame": number, **meta} for number, (_, meta) in enumerate(case.frames, 1)]
    told = {"name": case.name, "title": case.title, "rule": case.rule, "given": case.given, "frames": frames}
    told |= {"memory": case.memory, "completions": case.completions}
    return json.dumps(told, indent=1) + "\n"


def cases() -> list[Vector]:
    return [*receiving(), *sending()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the packet vectors.")
    parser.add_argument("--to", type=Path, default=HERE, metavar="FOLDER")
    folder = parser.parse_args().to
    for case in cases():
        (folder / f"{case.name}.pcapng").write_bytes(capture(case))
        (folder / f"{case.name}.json").write_text(expectations(case))


if __name__ == "__main__":
    main()
