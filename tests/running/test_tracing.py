"""A traced packet takes the path of its EV and arrives as the sender meant it."""

import pytest

from cli.commands.trace import as_text
from running.tracing import PlanExplainer, data_frame, follow, hop_limit, outer_destination, tables_hit
from running.view import journey_json
from topo.fault import conditions, make_fault
from topo.path import hops as planned_hops, paths
from topo.planfile import load_plan
from topo.show import paths_json, show_paths

PLAN = load_plan("tiny")
EXPLAINER = PlanExplainer(PLAN)


@pytest.mark.parametrize("path", list(paths(PLAN, PLAN.host("h0"), PLAN.host("h3"))), ids=lambda path: hex(path.ev))
def test_a_packet_crosses_the_switches_of_its_ev_and_reaches_the_host(path) -> None:
    frame = data_frame(PLAN, path, 100)
    journey = follow(PLAN, EXPLAINER, path, frame)
    crossed, reached = journey.hops, journey.reached
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
    journey = follow(PLAN, EXPLAINER, path, bytes(frame))
    crossed, reached = journey.hops, journey.reached
    assert reached is None
    assert len(crossed) == 1
    assert crossed[0].port_out is None
    assert crossed[0].reason


# What is in force, where the packet of the first path (h0, p0l0, p0s0, p0l1, h3) ends, and what is said of it.
FAULTS = [
    (("link-down", "p0l0-p0s0"), "p0l0", 0.0, "p0l0>p0s0 is down (fault: link-down p0l0-p0s0)"),
    (("port-down", "h0.p0"), "h0", 0.0, "h0>p0l0 is down (fault: port-down h0.p0)"),
    (("port-down", "h3.p0"), "p0l1", 0.0, "p0l1>h3 is down (fault: port-down h3.p0)"),
    (("blackhole", "p0s0>p0l1"), "p0s0", 0.0, "p0s0>p0l1 loses every packet silently"),
    (("blackhole", "p0l1>p0s0"), None, 1.0, ""),  # the other direction
    (("link-down", "p0l0-p0s1"), None, 1.0, ""),  # another path
    (("loss", "p0l0-p0s0", 20.0), None, 0.8, "p0l0>p0s0 loses 0.2 of its packets (fault: loss p0l0-p0s0 20 percent)"),
    (("switch-crash", "p0s0"), "p0s0", 0.0, "p0s0 has crashed: no program, no tables (fault: switch-crash p0s0)"),
    (("switch-stop", "p0l0"), "p0l0", 0.0, "p0l0 is stopped: it forwards nothing"),
    (("drain", "p0s0"), None, 1.0, "p0s0 is drained: NICs send nothing across it"),
    (("delay", "p0l0>p0s0", 40.0), None, 1.0, "p0l0>p0s0 takes 40 ms instead of 5"),
]


@pytest.mark.parametrize(("fault", "ends", "share", "said"), FAULTS, ids=lambda value: str(value))
def test_trace_and_paths_say_what_is_in_force_and_where_a_packet_ends(fault, ends, share, said) -> None:
    explainer = PlanExplainer(PLAN, faults=[make_fault(PLAN, *fault)])
    path = next(paths(PLAN, PLAN.host("h0"), PLAN.host("h3")))
    frame = data_frame(PLAN, path, 100)
    journey = follow(PLAN, explainer, path, frame)
    text = "\n".join(as_text(path, "a lab", frame, journey, full=False))
    told = journey_json(path, journey)
    (shown,) = paths_json(PLAN, [path], explainer.faults())
    listed = show_paths(PLAN, [path], explainer.faults())
    assert told["arrival"] == pytest.approx(share)
    assert shown["arrival"] == pytest.approx(share)
    assert said in text
    assert said in listed
    if ends is None:
        assert journey.reached == path.destination
        assert "decapsulates" in listed
        assert ("LOSES" in listed) == (share < 1)
    else:
        assert journey.reached is None
        assert text.endswith("no host receives it")
        assert (journey.hops[-1].switch.name if journey.hops else "h0") == ends
        assert "  DEAD" in listed
        assert "decapsulates" not in listed


def test_a_packet_is_lost_at_the_first_of_several_faults() -> None:
    faults = [make_fault(PLAN, "switch-crash", "p0l1"), make_fault(PLAN, "loss", "p0s0>p0l1", 50.0)]
    explainer = PlanExplainer(PLAN, faults=faults)
    path = next(paths(PLAN, PLAN.host("h0"), PLAN.host("h3")))
    journey = follow(PLAN, explainer, path, data_frame(PLAN, path, 0))
    assert [condition.place for condition in journey.conditions] == ["p0s0>p0l1", "p0l1"]
    assert [condition.place for condition in conditions(PLAN, faults, path)] == ["p0s0>p0l1", "p0l1"]
