"""Both programs under random tables and random packets: our JSON against p4c's on the reference engine, bit for bit."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from p4c.frontend.compilation import Compilation
from p4c.model import load
from switch.engine import PortConfig, QueueConfig
from switch.reference import ReferenceEngine
from switch.stf import parse, run

ROOT = Path(__file__).parents[3]
PORTS = (1, 2, 3, 4)
DSCPS = (0, 10, 12, 20, 22, 46, 26, 63)
HOPS = (1, 2, 3, 4, 5)


def tables(rng: random.Random, leaf: bool) -> str:
    """Entries of every kind that the programs have, as packet-test words."""
    lines = [
        f"add dscp_to_class dscp:{d} set_class(traffic_class:{i % 7}, priority:{rng.choice([0, 7])})"
        for i, d in enumerate(DSCPS)
    ]
    lines += [
        "add my_sid dst_addr:fcbb:bbbb:1::/48 end_un()",
        "add my_sid dst_addr:fcbb:bbbb:e002::/48 end_ua(next_hop:2)",
        "add my_sid dst_addr:fcbb:bbbb:1:e003::/64 end_un_ua(next_hop:3)",
    ]
    for hop in HOPS:
        mac = f"02:00:00:00:00:{hop:02x}"
        lines.append(
            f"add next_hop next_hop:{hop} set_adjacency(port:{rng.choice(PORTS)}, src_mac:{mac}, dst_mac:{mac})"
        )
    for index, prefix in enumerate(("fcbb:bbbb:2::/48", "fcbb:bbbb:3::/48", "fd00::/16", "fd00:1::/32")):
        lines.append(f"add ipv6_route dst_addr:{prefix} set_next_hop(next_hop:{rng.choice(HOPS)})")
        lines.append(f"member ecmp_selector {index + 1} set_next_hop(next_hop:{rng.choice(HOPS)})")
    lines += ["add ipv6_route dst_addr:fd00:2::/32 set_ecmp_group(ecmp_group:1)", "group ecmp_selector 1 1,2*2,3,4"]
    lines += ["add ipv6_route dst_addr:fcbb:bbbb::/32 drop_unknown_usid()", "add ecmp ecmp_group:1 group(1)"]
    for port in PORTS:
        for traffic_class in range(7):
            action = rng.choice(["trim_beyond", "trim_beyond", "drop_beyond"])
            limit = f"(packets:{rng.randint(1, 2)}, patience_us:{rng.choice([50, 100000])})"
            key = f"egress_port:{port} traffic_class:{traffic_class}"
            if rng.random() < 0.7:
                lines.append(f"add queue_limit {key} {action}{limit}")
            if rng.random() < 0.7:
                low = rng.randint(0, 3)
                high = low + rng.randint(0, 4)
                lines.append(f"add ecn_profile {key} mark_between(low_packets:{low}, high_packets:{high})")
        if leaf and rng.random() < 0.5:
            lines.append(f"add host_facing egress_port:{port} mark_last_hop(dscp:22)")
    return "\n".join(lines)


def frame(rng: random.Random) -> bytes:
    destination = rng.choice(
        [
            "fcbbbbbb0001"
            + rng.choice(["0002", "0003", "0009", "e002", "e003", "0000"])
            + rng.choice(["0002", "0000"])
            + "0" * 12,
            "fcbbbbbbe0020002" + "0" * 16,
            "fcbbbbbb0002" + rng.choice(["0000", "3001"]) + "0" * 16,
            "fd00000" + rng.choice("0123") + "0" * 16 + "00000001",
            f"{rng.getrandbits(128):032x}",
        ]
    )
    dscp_and_ecn = (rng.choice(DSCPS) << 2) | rng.randrange(4)
    first = (6 << 28) | (dscp_and_ecn << 20) | rng.getrandbits(20)
    payload = rng.randbytes(rng.choice([0, 60, 300, 900, 900]))
    hop_limit = rng.choice([0, 1, 2, 64, 255])
    next_header = rng.choice([17, 41, 59])
    header = first.to_bytes(4, "big") + len(payload).to_bytes(2, "big") + bytes([next_header, hop_limit])
    header += rng.randbytes(16) + bytes.fromhex(destination)
    ethernet = rng.randbytes(12) + (b"\x86\xdd" if rng.random() < 0.95 else b"\x08\x00")
    whole = ethernet + header + payload
    return whole if rng.random() < 0.95 else whole[: rng.randrange(14, len(whole) + 1)]


def sent(document: dict[str, object], words: str, seed: int) -> list[tuple[int, int, bytes]]:
    """All that leaves while random packets come in faster than the ports can send."""
    rng = random.Random(seed)
    engine, program = ReferenceEngine(seed=seed), load(document)
    failures = run(engine, program, parse(words))
    assert not failures, failures
    for port in PORTS:
        queue = QueueConfig(depth_packets=20)
        engine.configure_port(port, PortConfig(rate_bps=2_000_000, queues=(queue,) * 8), 0)
    found, now_ns = [], 1_000_000
    for _ in range(400):
        engine.receive(rng.choice(PORTS), frame(rng), now_ns)
        now_ns += rng.choice([1_000, 1_000, 1_000, 20_000, 300_000])
        found += [(t.t_ns, t.port, bytes(t.frame)) for t in engine.advance(now_ns)]
    return found + [(t.t_ns, t.port, bytes(t.frame)) for t in engine.advance(now_ns + 1_000_000_000)]


@pytest.mark.p4c
@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c is not on PATH")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["leaf", "spine"])
def test_both_compilers_forward_trim_and_mark_alike(name: str, seed: int, tmp_path: Path) -> None:
    source, target = ROOT / "p4" / f"{name}.p4", tmp_path / "p4c.json"
    done = subprocess.run(
        ["p4c-bm2-ss", "--std", "p4-16", "-o", str(target), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    words = tables(random.Random(seed), leaf=name == "leaf")
    ours = sent(Compilation(source).run().json, words, seed)
    assert ours == sent(json.loads(target.read_text()), words, seed)
    # The run has to reach what it is about: forwarding, trimming and marking.
    assert len(ours) > 30
    assert any(f[15] & 0x30 == 0x30 for _, _, f in ours)
    assert any(len(f) == 128 for _, _, f in ours)
