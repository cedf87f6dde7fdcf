"""A lab that stays up for days: files and memory bounded, and each rate of one interval."""

import json
import resource
from typing import Any

import pytest

from cli.traffic import JOURNAL_BYTES
from common.journal import Journal
from page.feed import LIVE_LINES_MAX, Feed
from page.live import ChangedCounters
from topo.planfile import load_plan

DAYS, WEEKS = 1_000_000, 10_000_000
"""Lines that eight hosts write in a day and a half and in two weeks."""
QP = {
    "qp": 17, "peer": "h3", "acked_bytes": 1 << 40, "cwnd_bytes": 1 << 16, "inflight_bytes": 1 << 15,
    "rtt_ns": 36_000_000,
}  # fmt: skip
PORT = {"port": 1, "tx_packets": 1 << 30, "tx_bytes": 1 << 40, "rx_packets": 1 << 30, "rx_bytes": 1 << 40}
SAMPLE: dict[str, Any] = {"ports": [PORT] * 4, "qps": [QP] * 4}
SECOND_NS = 1_000_000_000
LOOK_S = 50
"""Seconds of the lab between two looks; a file turns over after some hundred lines."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines", [DAYS, pytest.param(WEEKS, marks=pytest.mark.by_hand("six minutes, and a tenth of them says the same"))]
)
def test_millions_of_lines_of_a_living_lab_leave_files_and_memory_bounded(lines: int, tmp_path) -> None:
    hosts = list(load_plan("lab").hosts())
    (tmp_path / "run" / "journal").mkdir(parents=True)
    (agents := tmp_path / "agents").mkdir()
    now_ns = 0
    journals = [
        Journal(agents / f"{host}.jsonl", str(host), lambda: now_ns, bytes_max=JOURNAL_BYTES, lossy=True)
        for host in hosts
    ]
    feed = Feed(tmp_path / "run", agents, LIVE_LINES_MAX)
    written, most_lines, most_files = 0, 0, 0
    grown_kb = []
    while written < lines:
        for _ in range(LOOK_S):
            now_ns += SECOND_NS
            for journal in journals:
                journal.write("sample", **SAMPLE)
        written += LOOK_S * len(journals)
        most_lines = max(most_lines, feed.poll())
        most_files = max(most_files, sum(file.stat().st_size for file in agents.iterdir()))
        grown_kb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    feed.close()
    assert most_lines <= LIVE_LINES_MAX
    assert most_files <= 2 * JOURNAL_BYTES * len(hosts)
    warm = grown_kb[3 * LIVE_LINES_MAX // (LOOK_S * len(hosts))]  # the window has been full three times by then
    assert grown_kb[-1] < 1.1 * warm
    print(f"{written:,} lines, {most_lines:,} kept, {most_files >> 20} MiB of files, {grown_kb[-1] >> 10} MiB resident")


LOOK_NS = 500_000_000


def test_a_counter_that_rests_is_journalled_before_its_next_change_and_once_after_it(tmp_path) -> None:
    counted = [0, 0, 0, 70, 90, 90, 90, 90, 100, 100, 100]
    journal = Journal(tmp_path / "switches.jsonl", "lab")
    counters = ChangedCounters(journal)
    for look, packets in enumerate(counted):
        counters.look("p0l0", look * LOOK_NS, [{"port": 1, "tx_packets": packets}])
    counters.look("p0l1", 0, [])
    lines = [json.loads(line) for line in (tmp_path / "switches.jsonl").read_text().splitlines()]
    told = [(line["t_ns"] // LOOK_NS, line["ports"][0]["tx_packets"]) for line in lines if line["device"] == "p0l0"]
    assert told == [(0, 0), (1, 0), (2, 0), (3, 70), (4, 90), (5, 90), (7, 90), (8, 100), (9, 100)]
    journal.close()
