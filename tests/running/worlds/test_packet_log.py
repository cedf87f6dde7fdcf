"""Packet logs of runs in virtual time: every packet's way is whole, and the counts are those of the switches."""

import json
import signal
from collections import Counter, defaultdict
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from cli.choosing import choose
from cli.main import main, parser
from judging.run import Run
from running.worlds.simulated import PacketLog
from switch.packet_log import PacketRecord

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
    counted = Counter({name: sum(one[name] for each in totals.values() for one in each) for name in totals["p0l0"][0]})
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
