"""A host that stands still acts when it runs again, and not at what was due meanwhile."""

from typing import Any

from benchmarks.rig.profiles import profile
from endpoint import factory, profile as profiles
from endpoint.host import HostNic
from endpoint.virtual_host import VirtualHost
from operations.incident.simulated import LateHost

MS = 1_000_000


def test_what_was_due_in_a_pause_happens_at_its_end() -> None:
    lines: list[tuple[int, str]] = []

    def journal(t_ns: int, kind: str, fields: Any) -> None:
        lines.append((t_ns, kind))

    row = profiles.parse(profile(0))
    nic = HostNic(row, factory.make("mrc", row, 1, {}, 0), journal, clock=lambda: 0, now_ns=0, sample_ns=100 * MS)
    virtual = VirtualHost(nic, 0)
    late = LateHost(virtual, nic, begin_ns=90 * MS, every_ns=1000 * MS, late_ns=50 * MS)
    assert late.due_ns == 140 * MS
    late.live([], 139 * MS)
    assert lines == []
    late.live([], 141 * MS)
    assert lines == [(140 * MS, "stall"), (140 * MS, "sample")]
    assert virtual.now_ns == 140 * MS
