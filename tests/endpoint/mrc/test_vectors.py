"""The packet vectors of docs/vectors: read by two readers that share no code, and played to our NIC.

The vectors hold answers written by the rule; the NIC's own code takes no part in making them.
"""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.rig.profiles import profile as rig_profile
from cli.dissector import tshark as loading
from endpoint import profile as profiles
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import frame as frames, icrc, wire
from endpoint.transport import CompletionStatus, QPInfo
from tests.helpers.dissector import collect

FOLDER = Path(__file__).parents[3] / "docs" / "vectors"
SETUP = json.loads((FOLDER / "setup.json").read_text())
NAMES = sorted(path.stem for path in FOLDER.glob("*.pcapng"))
PORT_OF = {path["ev"]: path["port"] for path in SETUP["paths"]}
Fields = dict[str, Any]

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


def vector(name: str) -> tuple[Fields, list[bytes]]:
    """The expectations of a vector and its frames."""
    told = json.loads((FOLDER / f"{name}.json").read_text())
    captured = list(blocks((FOLDER / f"{name}.pcapng").read_bytes()))
    assert len(captured) == len(told["frames"])
    return told, captured


def blocks(data: bytes) -> Iterator[bytes]:
    """The frames of the enhanced packet blocks of a pcapng (draft-ietf-opsawg-pcapng)."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        if kind == 6:
            (size,) = struct.unpack_from("<I", data, at + 20)
            yield data[at + 28 : at + 28 + size]
        at += length


# --- our codec --------------------------------------------------------------------------------------------------------


def decoded(data: bytes) -> Fields:
    """The fields that our codec finds in a frame, by the names of the vectors."""
    outside = frames.parse(data)
    bth = wire.Bth.unpack(data, outside.bth)
    at = outside.bth + wire.BTH_BYTES
    opcode = wire.Opcode(bth.opcode)
    found: Fields = {"opcode": opcode.name, "psn": bth.psn, "ev": outside.ev, "trimmed": outside.udp_end > len(data)}
    found["retransmission"] = bool(bth.flags & wire.RETRANSMISSION)
    if found["trimmed"]:
        return found
    found["icrc"] = icrc.verify(data[outside.offset :])
    if opcode in wire.WRITES:
        reth = wire.Reth.unpack(data, at + wire.METH_BYTES)
        found |= {"va": reth.va, "rkey": reth.rkey, "length": reth.length}
    elif opcode is wire.Opcode.SACK:
        seth = wire.Seth.unpack(data, at)
        found |= {"cack_psn": seth.cack_psn, "entropy": seth.entropy, "mark": seth.mark}
        first = seth.cack_psn + seth.sack_offset
        found["received"] = [(first + bit) & 0xFFFFFF for bit in range(64) if seth.bitmap >> bit & 1]
        found |= {"probe_response": seth.probe_response, "probe_id": seth.ack_psn_offset & 0xFFFF}
        found["rcvd_bytes"] = wire.CcState.unpack(data, at + wire.SETH_BYTES).rcvd_units
    elif opcode is wire.Opcode.NACK:
        neth = wire.Neth.unpack(data, at)
        found |= {"nack_psn": neth.nack_psn, "reason": neth.reason, "entropy": neth.entropy}
    elif opcode is wire.Opcode.ACKNOWLEDGE:
        aeth = wire.Aeth.unpack(data, at)
        found |= {"syndrome": aeth.syndrome, "msn": aeth.msn}
    elif opcode is wire.Opcode.PROBE:
        found["probe_id"] = wire.Peth.unpack(data, at).probe_id
    elif opcode is wire.Opcode.ENDPOINT_REQUEST:
        erth = wire.Erth.unpack(data, at)
        found |= {"op": erth.op, "port_status_mask": erth.port_status_mask}
    else:
        eeth = wire.Eeth.unpack(data, at)
        found |= {"op": eeth.op, "tx_timestamp": eeth.tx_timestamp}
    return found


def lacks(required: Fields, found: Fields) -> Fields:
    """The required fields that differ, with what was found."""
    return {name: (value, found.get(name)) for name, value in required.items() if found.get(name) != value}


@pytest.mark.parametrize("name", NAMES)
def test_our_codec_reads_in_every_frame_what_the_vector_says(name: str) -> None:
    told, captured = vector(name)
    for meta, data in zip(told["frames"], captured, strict=True):
        found = decoded(data)
        assert lacks(meta["fields"], found) == {}
        assert found["trimmed"] == meta["fields"].get("trimmed", False)
        assert found["trimmed"] or found["icrc"] == meta.get("icrc_right", True)


# --- Wireshark --------------------------------------------------------------------------------------------------------

SHARK = {
    "psn": "mrc.psn", "va": "mrc.reth.va", "rkey": "mrc.reth.rkey", "length": "mrc.reth.length", "ev": "mrc.ev",
    "cack_psn": "mrc.sack.cack_psn", "entropy": "mrc.entropy", "mark": "mrc.sack.m", "nack_psn": "mrc.nack.psn",
    "reason": "mrc.nack.reason", "syndrome": "mrc.aeth.syndrome", "msn": "mrc.aeth.msn", "op": "mrc.endpoint.op",
    "rcvd_bytes": "mrc.cc.rcvd_bytes",
}  # fmt: skip


@pytest.fixture(scope="module")
def shark(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The fields that tshark shows of all vectors, from one process: files of this format may be joined."""
    whole = tmp_path_factory.mktemp("shark") / "all.pcapng"
    whole.write_bytes(b"".join((FOLDER / f"{name}.pcapng").read_bytes() for name in NAMES))
    with loading() as words:
        argv = [*words, "-r", str(whole), "-T", "json", "--no-duplicate-keys"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    packets = iter(json.loads(done.stdout))
    found = {name: list(islice(packets, len(vector(name)[0]["frames"]))) for name in NAMES}
    assert list(packets) == []
    return found


@needs_tshark
@pytest.mark.parametrize("name", NAMES)
def test_wireshark_reads_in_every_frame_what_the_vector_says(name: str, shark: dict[str, list[dict[str, Any]]]) -> None:
    told, _ = vector(name)
    shown = shark[name]
    assert len(shown) == len(told["frames"])
    for meta, packet in zip(told["frames"], shown, strict=True):
        layers = packet["_source"]["layers"]
        values: dict[str, list[str]] = {}
        collect(layers["mrc"], values)
        flags = layers["frame"]["frame.packet_flags_tree"]["frame.packet_flags_direction"]
        assert int(flags, 0) == (1 if meta["direction"] == "in" else 2)
        for field, value in meta["fields"].items():
            if field in SHARK and not (field == "op" and meta["direction"] == "out"):
                assert int(values[SHARK[field]][0], 0) == value, (field, values)
        assert wire.Opcode(int(values["mrc.opcode"][0], 0)).name == meta["fields"]["opcode"]
        status = 3 if meta["fields"].get("trimmed") else 1 if meta.get("icrc_right", True) else 0
        assert int(values["mrc.icrc.status"][0], 0) == status


# --- our NIC ----------------------------------------------------------------------------------------------------------


class Keys(Random):
    """Chance that draws the rkey of the set-up first."""

    drawn = False

    def getrandbits(self, k: int) -> int:
        if k == 32 and not self.drawn:
            self.drawn = True
            return int(SETUP["memory"]["rkey"])
        return super().getrandbits(k)


class Device:
    """Our NIC as the set-up describes the device."""

    def __init__(self, given: Fields) -> None:
        self.now_ns = 1_000_000
        device, tester = SETUP["device"], SETUP["tester"]
        rig = rig_profile(1, planes=2, evs_per_plane=2, rate_bps=100_000_000_000, base_rtt_ns=12_000, jitter_ns=0)
        ports = [
            old | new | {"gateway_mac": peer["mac"], "usid_address": device["usid_address"]}
            for old, new, peer in zip(rig["ports"], device["ports"], tester["ports"], strict=True)
        ]
        da = tester["usid_address"]
        paths = [{**path, "plane": path["port"] - 1, "via": f"s{path['ev']}", "da": da} for path in SETUP["paths"]]
        paths = [path for path in paths if path["ev"] in given.get("evs", PORT_OF)]
        rig |= {"address": device["address"], "pmtu": SETUP["pmtu"], "mtu": 1280, "ports": ports}
        rig["dscp"] |= SETUP["dscp"]
        rig["destinations"] = {"h0": {"index": 0, "address": tester["address"], "paths": paths}}
        self.nic = Endpoint(profiles.parse(rig), rng=Keys(1), now_ns=self.now_ns, sack_threshold_bytes=1 << 20)
        self.memory = bytearray(SETUP["memory"]["length"])
        self.region = self.nic.register_memory(self.memory)
        assert (self.region.va, self.region.rkey) == (SETUP["memory"]["va"], SETUP["memory"]["rkey"])
        self.cq = self.nic.create_cq(100)
        self.qp = self.nic.create_qp(self.cq, psn=given.get("first_psn", 0), mpr=SETUP["mpr"])
        assert self.qp.qpn == device["qpn"]
        for number in range(given.get("receives", 0)):
            self.qp.post_recv(number)
        self.qp.connect(QPInfo("h0", tester["qpn"], given.get("expected_psn", 0), SETUP["mpr"], 128), self.now_ns)
        if given["role"] == "requester":
            self._post(given["packets"])

    def _post(self, packets: int) -> None:
        pmtu = SETUP["pmtu"]
        source = bytearray((packet * 37 + place) & 0xFF for packet in range(packets) for place in range(pmtu))
        region, memory = self.nic.register_memory(source), SETUP["memory"]
        self.qp.post_write(1, region, 0, len(source), memory["va"], memory["rkey"], None)

    def out(self) -> list[bytes]:
        """Everything that the NIC sends now."""
        found: list[bytes] = []
        while (
            batch := self.nic.packets_to_send(self.now_ns, 64)
        ) or self.nic.scheduler.pacing_ns < self.now_ns + 10_000:
            self.now_ns = max(self.now_ns, self.nic.scheduler.pacing_ns) if not batch else self.now_ns
            found += [frame for _, frame in batch]
        return found


@pytest.mark.parametrize("name", NAMES)
def test_our_nic_answers_as_the_vector_says(name: str) -> None:
    told, captured = vector(name)
    device = Device(told["given"])
    waiting: list[Fields] = []
    for meta, data in [*zip(told["frames"], captured, strict=True), ({"direction": "end"}, b"")]:
        if meta["direction"] == "out":
            waiting.append(meta)
            continue
        sent = [decoded(frame) for frame in device.out()]
        for expected in waiting:
            if expected.get("optional") and not (sent and lacks(expected["fields"], sent[0]) == {}):
                continue
            assert sent, f"nothing where {expected} must come"
            assert lacks(expected["fields"], sent.pop(0)) == {}
            while expected.get("copies") and sent and lacks(expected["fields"], sent[0]) == {}:
                sent.pop(0)
        assert sent == [], f"{name}: more than the vector has"
        waiting = []
        if data:
            device.nic.receive(PORT_OF[frames.parse(data).ev], [data], device.now_ns)
    memory = bytearray(len(device.memory))
    for part in told["memory"]:
        content = bytes.fromhex(part["hex"])
        memory[part["offset"] : part["offset"] + len(content)] = content
    assert device.memory == memory
    assert [summary(done) for done in device.cq.poll(10)] == told["completions"]


def summary(done: Any) -> Fields:
    """A completion as the vectors write it."""
    if done.immediate is not None:
        return {"immediate": done.immediate, "bytes": done.byte_len}
    return {"status": "success" if done.status is CompletionStatus.SUCCESS else "error"}


def test_the_script_writes_the_same_files_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "make.py", "--to", tmp_path], check=True, timeout=60)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.stem in NAMES}
    assert len(NAMES) > 15


def test_every_vector_is_on_the_page() -> None:
    page = (FOLDER / "README.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in page] == []
