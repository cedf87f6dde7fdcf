"""Rates of switches on the page of a lab that is up: each is of one interval, and ends when the traffic does."""

import json
from pathlib import Path

from common.journal import Journal
from page.live import ChangedCounters

LOOK_NS = 500_000_000


def test_a_counter_that_rests_is_journalled_before_its_next_change_and_once_after_it(tmp_path: Path) -> None:
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
