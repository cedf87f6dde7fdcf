"""What a receiver did: the packet log and both ends' sampled lines are written apart, and must tell the same."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from endpoint.packet_sampling import ONE_IN
from judging.run import Run
from page.live import PacketAnswers, answer
from running.directory import find

ROOT = Path(__file__).parents[2]
Line = dict[str, Any]


@pytest.fixture(scope="module")
def incast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose log holds sampled packets, whole and trimmed ones; small packets make many of both."""
    folder = tmp_path_factory.mktemp("incast")
    words = ["incast", "--world", "simulated", "--seed", "2", "--set", "packets.pmtu_bytes=2048", "--time", "0.1"]
    words += ["--until", "2.5", "--record-packets", "1.4..1.9", "--plain", "--runs", str(folder)]
    line = [sys.executable, "-m", "cli", "run", *words]
    subprocess.run(line, cwd=ROOT, capture_output=True, check=False, timeout=300)
    return find(folder, "latest")


@pytest.fixture(scope="module")
def log(incast: Path) -> list[Line]:
    lines = [json.loads(part) for part in (incast / "packets.jsonl").read_text().splitlines()]
    return [line for line in lines if "packet" in line]


def test_sampled_lines_are_of_the_packets_that_the_log_has_at_the_times_of_the_log(incast: Path, log) -> None:
    begin_ns, end_ns = log[0]["t_ns"], log[-1]["t_ns"]

    def told(line: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(line[name] for name in ("psn", "ev", "op", "va", "payload"))

    chosen = [line for line in log if str(line["op"]).startswith("WRITE") and line["psn"] % ONE_IN == 0]
    sent = {(line["queued_ns"], line["src"], line["dst"], *told(line)) for line in chosen if line["port_in"] is None}
    received = {
        (line["t_ns"], line["dst"], line["src"], line["trimmed"], *told(line))
        for line in chosen
        if line["fate"] == "received"
    }
    inside = [one for one in Run.open(incast).kind("sampled") if begin_ns < one["t_ns"] < end_ns]
    cards_sent = {(one["t_ns"], one["node"], one["peer"], *told(one)) for one in inside if one["what"] == "sent"}
    cards_received = {
        (one["t_ns"], one["node"], one["peer"], one.get("trimmed", False), *told(one))
        for one in inside
        if one["what"] == "received"
    }
    assert len(sent) > 5
    assert len(received) > 5
    assert any(one[3] for one in received)
    # A host's frame waits for its port before the log sees it: at the edges of the window one record has more.
    assert {one for one in sent if begin_ns < one[0] < end_ns - 10**8} <= cards_sent
    assert {one for one in cards_sent if begin_ns + 10**8 < one[0] < end_ns - 10**8} <= sent
    assert {one for one in received if begin_ns < one[0] < end_ns} == cards_received


def test_the_answer_of_the_log_is_the_answer_that_the_sender_noted(incast: Path, log: list[Line]) -> None:
    noted: dict[tuple[Any, ...], list[int]] = {}
    for one in Run.open(incast).kind("sampled"):
        if one["what"] == "answered":
            key = (one["node"], one["peer"], one["qp"], one["psn"], one["op"])
            noted.setdefault(key, []).append(one["t_ns"])
    seen = {"SACK": 0, "NACK": 0}
    for line in log:
        if line["t_ns"] > log[-1]["t_ns"] - 10**8:
            break  # the answer came when the log was over
        if line["fate"] != "received" or not str(line["op"]).startswith("WRITE") or line["psn"] % ONE_IN:
            continue
        found = answer(incast / "packets.jsonl", line["packet"])
        assert found["received"]["t_ns"] == line["t_ns"]
        assert (found["placed"] is None) == line["trimmed"]
        told = found["answered"]
        times = noted.get((line["src"], line["dst"], line["qpn"], line["psn"], told["op"]), [])
        assert told["came_ns"] in times
        seen[told["op"]] += 1
    assert min(seen.values()) > 1


@pytest.mark.slow
def test_a_payload_lies_in_the_memory_that_the_peer_may_write_to(incast: Path, log: list[Line]) -> None:
    memory = {(one["node"], one["peer"]): one for one in Run.open(incast).kind("memory")}
    placed = [line for line in log if line["fate"] == "received" and line["va"] is not None and not line["trimmed"]]
    assert len(placed) > 100
    for line in placed:
        region = memory[line["dst"], line["src"]]
        assert region["va"] <= line["va"] <= line["va"] + line["payload"] <= region["va"] + region["length"]


def test_without_a_log_or_without_the_packet_the_page_is_told_so(incast: Path, run: Path) -> None:
    with pytest.raises(LookupError, match="--record-packets"):
        PacketAnswers([run])(0, 1)
    with pytest.raises(LookupError, match="no packet 99999999"):
        PacketAnswers([incast])(0, 99999999)
