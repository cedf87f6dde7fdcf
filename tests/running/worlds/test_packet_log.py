"""Packets of runs in virtual time: the log of them, and payload that is only counted."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any

import pytest

from cli.choosing import choose
from cli.commands.seeds import sweep
from cli.main import main, parser
from endpoint import FORM
from endpoint.mrc import responder
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import memory
from endpoint.transport import MemoryRegion
from judging.run import Run
from running.directory import RunDirectory
from running.estimate import rank_memories
from running.transport_choice import transport
from running.worlds.simulated import PacketLog, SimulatedWorld
from scenarios.scenario import Workload
from switch.packet_log import PacketRecord
from tests.helpers.chosen import chosen
from tests.helpers.fuzzing import seeds
from tests.helpers.random_run import RandomRun
from topo.plan import Trimming
from topo.planfile import load_plan

Line = dict[str, Any]
CABLE_NS = 510  # of plan tiny at 100 Gb/s, with a probe of 118 bytes
COUNTERS = {
    "lost": "drop_loss", "queue_full": "drop_queue_full", "port_down": "drop_port_down", "wiped": "drop_wiped",
    "no_program": "drop_no_program", "no_port": "drop_no_port",
}  # fmt: skip


def logged(tmp_path: Path, scenario: str, window: str, *words: str) -> tuple[Line, list[Line], Line]:
    """The first line, the packets' lines and the last line of a run's packet log."""
    command = ["run", scenario, "--world", "simulated", "--seed", "3", "--plain", "--runs", str(tmp_path)]
    assert main([*command, "--record-packets", window, *words]) in (0, 3)
    first, *lines, last = map(json.loads, (tmp_path / "latest" / "packets.jsonl").read_text().splitlines())
    return first, lines, last


def test_a_log_of_the_whole_run_has_each_way_without_gaps_and_counts_what_the_switches_count(tmp_path: Path) -> None:
    first, lines, last = logged(tmp_path, "smoke", "0..60", "--rate", "100000", "--fault", "loss p0l1-p0s1 20 @1 for 2")
    assert first == {"format": "mrclab packet log", "version": 1, "start_ns": 0, "stop_ns": first["stop_ns"]}
    assert last == {"end_ns": last["end_ns"], "lines": len(lines)}
    assert last["end_ns"] >= lines[-1]["t_ns"]
    assert [line["t_ns"] for line in lines] == sorted(line["t_ns"] for line in lines)
    ways: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        ways[line["packet"]].append(line)
    for way in ways.values():
        for here, there in pairwise(way):
            assert (here["fate"], here["to"], here["arrives_ns"]) == ("sent", there["node"], there["queued_ns"])
            assert [here[name] for name in ("src", "dst", "psn", "ev")] == [
                there[name] for name in ("src", "dst", "psn", "ev")
            ]
        begins, ends = way[0], way[-1]
        assert begins["port_in"] is None or begins["t_ns"] < 2 * CABLE_NS  # the first probes left before the log began
        if ends["fate"] == "received" and begins["port_in"] is None:
            assert ends["node"] == ends["dst"] or ends["op"] == "PATH_PROBE"
            assert len(way) in (3, 5)  # under one leaf or two
    ends = Counter(way[-1]["fate"] for way in ways.values())
    assert ends["lost"] > 10
    assert ends["received"] > 10 * ends["lost"]
    assert ends["sent"] < 100  # under way when the run ended
    run = Run.open(tmp_path / "latest")
    totals = {line["device"]: line["ports"] for line in run.kind("sample") if line.get("device")}
    at_switches = [line for line in lines if line["node"] in totals]
    counted: Counter[str] = Counter()
    for ports in totals.values():
        for port in ports:
            counted.update(port)  # a counter that is zero is left out of a sample
    fates = Counter(line["fate"] for line in at_switches)
    assert {fate: fates[fate] for fate in COUNTERS} == {fate: counted[name] for fate, name in COUNTERS.items()}
    assert fates["sent"] + fates["lost"] == counted["tx_packets"]
    assert sum(line["bytes"] for line in at_switches if line["fate"] in ("sent", "lost")) == counted["tx_bytes"]


def test_a_log_that_ctrl_c_meets_in_the_middle_of_its_lines_has_them_all(tmp_path, monkeypatch) -> None:
    number, line = count(), PacketLog._line

    def pressed(self: PacketLog, record: PacketRecord) -> Line:
        if next(number) == 100:
            signal.raise_signal(signal.SIGINT)
        return line(self, record)

    monkeypatch.setattr(PacketLog, "_line", pressed)
    command = ["run", "smoke", "--world", "simulated", "--seed", "3", "--plain", "--runs", str(tmp_path)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it
    try:
        assert main([*command, "--record-packets", "0..60"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    _, *lines, last = map(json.loads, (tmp_path / "latest" / "packets.jsonl").read_text().splitlines())
    assert last["lines"] == len(lines) > 100


def test_a_window_of_incast_shows_trims_with_the_queues_that_made_them(tmp_path: Path) -> None:
    _, lines, _ = logged(tmp_path, "incast", "1.5..1.9", "--time", "0.1", "--until", "2.5")
    cut = [line for line in lines if line["trimmed"] and line["bytes"] < line["bytes_in"]]
    assert cut
    assert all(line["node"][0] == "p" and line["op"].startswith("WRITE") and line["priority"] for line in cut)
    assert max(line["depth"] for line in lines) > 3
    refused = {(line["src"], line["dst"], line["psn"]) for line in lines if line["op"] == "NACK"}
    assert refused & {(line["dst"], line["src"], line["psn"]) for line in cut}
    assert all(line["echo_ev"] is not None for line in lines if line["op"] in ("SACK", "NACK"))


def test_a_wires_overhead_and_a_nics_latency_are_in_every_packets_way(tmp_path: Path) -> None:
    """By hand: at 100 Gb/s a byte takes 0.08 ns; cables of 500 ns, and 800 ns of the NIC on a host's own."""
    words = ["--rate", "100000", "--set", "links.wire_overhead_bytes=24", "--set", "links.nic_latency_ns=8_000_000"]
    _, lines, _ = logged(tmp_path, "smoke", "1..1.2", *words)
    sent = [line for line in lines if line["fate"] == "sent"]
    assert {line["bytes"] for line in sent} >= {118, 4234}
    for line in sent:
        nic = 800 if "h" in line["node"] + line["to"] else 0
        assert line["arrives_ns"] - line["t_ns"] == -(-(line["bytes"] + 24) * 8 // 100) + 500 + nic
    busy = sorted(line["t_ns"] for line in sent if line["node"] == "h0" and line["port"] == 1 and line["bytes"] > 4200)
    assert min(later - earlier for earlier, later in pairwise(busy)) == 341  # 4234 + 24 bytes, rounded up


@pytest.mark.parametrize("window", ["3", "3..2", "..2", "-1..2", "200..201", "a..b", "2..2", "1..nan"])
def test_a_window_that_cannot_be_is_refused_with_an_example(window: str, tmp_path, refused) -> None:
    words = ["run", "smoke", "--world", "simulated", "--runs", str(tmp_path), f"--record-packets={window}"]
    assert "must be START..END in seconds of the run, such as 5..5.5" in refused(*words)
    assert not list(tmp_path.iterdir())


def test_packets_on_real_links_are_not_recorded_but_captured(tmp_path, capsys) -> None:

    words = ["run", "smoke", "--record-packets", "1..2", "--rate", "10"]

    arguments = parser("run").parse_args(words)
    with pytest.raises(ValueError, match=r"`\./lab capture` records packets"):
        choose(arguments)


KINDS: dict[str, dict[str, Any]] = {
    "all_reduce": {"size": 60_000, "rounds": 3, "segment": 8192},
    "all_gather": {"size": 50_004, "rounds": 2, "segment": 65_536},
    "all_to_all": {"size": 40_000, "rounds": 3, "segment": 4096},
    "training": {"size": 30_000, "steps": 2, "compute_ns": 100_000, "compute_jitter": 0.5, "segment": 8192},
    "mix": {"sizes": [[1, 1], [63, 2], [4097, 2], [20_001, 1]], "messages": 60, "qps": 2},
    "incast": {"size": 10_000, "messages": 12},
}


class CountedRun(RandomRun):
    """As the random run, with one workload more, and trims that leave more or less of a packet."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        kind = self.random.choice(list(KINDS))
        self.workloads.append(Workload(kind, KINDS[kind], name="other", phase="reference"))
        size = self.random.choice((128, 134, 138, 142, 300, 512))
        self.plan = replace(self.plan, trimming=Trimming(size_bytes=size))


def compare(seed: int, directory: Path) -> int:
    """Returns the bytes that receivers have verified in the run without payload."""
    run = CountedRun(seed)
    expected = run.journals(directory / "real", None)
    got = run.journals(directory / "counted", None, counted=True)
    assert got.keys() == expected.keys()
    for name, lines in expected.items():
        for place, line in enumerate(lines):
            assert got[name][place : place + 1] == [line], f"seed {seed}: {name}, line {place + 1}"
        assert len(got[name]) == len(lines), f"seed {seed}: {name} goes on"
    return sum(int(total["result"]["bytes_verified"]) for total in run.totals)


def test_the_commits_random_runs_are_the_same_with_and_without_payload(tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path / str(seed)) for seed in chain(range(12), seeds())) > 1_000_000


PLACE = memory.place


def beside(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Put one packet in sixteen a byte further than it belongs."""
    return PLACE(region, at + (at >> 12 & 15 == 3 and at + size < region.length), frame, start, size)


def at_the_start(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Forget of some packets how far into the message they are."""
    return PLACE(region, 0 if at >> 12 & 15 == 3 else at, frame, start, size)


def never(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Acknowledge some packets without placing them."""
    return at >> 12 & 15 == 3 or PLACE(region, at, frame, start, size)


@pytest.mark.skipif(FORM.compiled, reason="a bug can only be planted into the interpreted form: the next test does")
@pytest.mark.parametrize("bug", [beside, at_the_start, never])
@pytest.mark.parametrize("kind", ["permutation", "all_reduce", "all_to_all"])
@pytest.mark.parametrize("counted", [False, True], ids=["real", "counted"])
def test_packets_in_wrong_places_are_found_with_and_without_payload(bug, kind, counted, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(responder, "place", bug)
    run = RandomRun(3)
    run.transport, run.faults = transport("mrc"), []
    options = {"size": 200_000, "messages": 3} if kind == "permutation" else {"size": 200_000, "rounds": 2}
    run.workloads = [Workload(kind, options, phase="reference")]
    run.journals(tmp_path, None, record=False, counted=counted)
    assert sum(int(total["result"]["bytes_wrong"]) for total in run.totals) > 0


@pytest.mark.slow
@pytest.mark.skipif(not FORM.compiled, reason="the test before it has run")
def test_bugs_are_planted_into_the_interpreted_form() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "", "-k", "wrong_places", __file__]
    environment = {**os.environ, "MRCLAB_COMPILED": "off"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "18 passed" in done.stdout


def test_memory_does_not_follow_the_size_of_messages(tmp_path: Path) -> None:
    run = RandomRun(4)
    directory = RunDirectory.create(tmp_path, "large", 1)
    world = SimulatedWorld(run.plan, replace(transport("mrc"), payload="counted"), 1, directory, lambda text: None)
    try:
        hosts = list(world.clients)[:2]
        for kind, options in (("all_to_all", {"size": 1 << 30, "segment": 1 << 20}), ("write_bw", {"size": 1 << 30})):
            for host in hosts:
                ident = world.clients[host].send("workload.prepare", name=kind, kind=kind, ranks=hosts, options=options)
                offers = world.clients[host].result(ident)["offers"]
                assert any(offer["length"] >= 1 << 30 for offer in offers.values()) or host == hosts[0]
        nics = [client.nic.transport for client in world.clients.values()]
        regions = [region for nic in nics if isinstance(nic, Endpoint) for region in nic.memory.writable.values()]
        assert sum(region.length for region in regions) > 1 << 34
        assert all(region.buffer is None for region in regions)
    finally:
        world.close()


@pytest.mark.parametrize(("words", "payload"), [([], "real"), (["--payload", "counted"], "counted")])
def test_a_run_carries_payload_unless_told(words: list[str], payload: str) -> None:
    spec = chosen(["collision", "--world", "simulated", "--seed", "1", *words])
    assert spec.choices.transport.payload == spec.options()["payload"] == payload


def test_real_links_carry_every_byte() -> None:
    with pytest.raises(ValueError, match="--payload counted: only with --world simulated"):
        chosen(["collision", "--payload", "counted", "--rate", "10"])


@pytest.mark.parametrize(
    ("words", "payload"), [([], "counted"), (["--payload", "real"], "real"), (["--world", "emulated"], "real")]
)
def test_a_sweep_counts_payload_in_virtual_time(words: list[str], payload: str) -> None:
    parser = argparse.ArgumentParser()
    sweep.register(parser.add_subparsers())
    (variant,) = sweep.asked(parser.parse_args(["sweep", "collision", *words]))
    given = list(variant.arguments)
    assert given[given.index("--payload") + 1] == payload


def test_counted_payload_of_any_size_takes_no_memory() -> None:
    workload = Workload("all_reduce", {"size": 1 << 30, "rounds": 1})
    assert {rank.bytes for rank in rank_memories(workload, load_plan("rack"), counted=True)} == {0}
    with pytest.raises(ValueError, match=r"would hold 5\.37 GB"):
        rank_memories(workload, load_plan("rack"))
