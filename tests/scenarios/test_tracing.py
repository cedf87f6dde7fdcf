"""A traced packet takes the path of its EV and arrives as the sender meant it."""

from __future__ import annotations

import pytest

from scenarios.tracing import PlanExplainer, data_frame, follow, hop_limit, outer_destination, tables_hit
from topo.path import hops as planned_hops
from topo.path import paths
from topo.planfile import load_plan

PLAN = load_plan("tiny")
EXPLAINER = PlanExplainer(PLAN)


@pytest.mark.parametrize("path", list(paths(PLAN, PLAN.host("h0"), PLAN.host("h3"))), ids=lambda path: hex(path.ev))
def test_a_packet_crosses_the_switches_of_its_ev_and_reaches_the_host(path) -> None:  # type: ignore[no-untyped-def]
    frame = data_frame(PLAN, path, 100)
    crossed, reached = follow(PLAN, EXPLAINER, path, frame)
    assert reached == path.destination
    wanted = [(hop.switch, hop.port_in, hop.port_out, hop.da_out) for hop in planned_hops(PLAN, path)]
    assert [(hop.switch, hop.port_in, hop.port_out, outer_destination(hop.frame_out)) for hop in crossed] == wanted
    assert [hop_limit(hop.frame_out) for hop in crossed] == [63, 62, 61]
    # Everything behind the outer header arrives as it was sent.
    assert crossed[-1].frame_out[54:] == frame[54:]
    assert ("my_sid", "end_un()") in tables_hit(crossed[0].steps)


def test_a_packet_that_no_table_knows_says_where_and_why_it_died() -> None:
    path = next(paths(PLAN, PLAN.host("h0"), PLAN.host("h3")))
    frame = bytearray(data_frame(PLAN, path, 0))
    frame[42:44] = b"\xde\xad"  # the first uSID is nobody's
    crossed, reached = follow(PLAN, EXPLAINER, path, bytes(frame))
    assert reached is None
    assert len(crossed) == 1
    assert crossed[0].port_out is None
    assert crossed[0].reason
