"""What the page may ask: faults as everywhere else, and nothing that is not in the list, whatever is sent."""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.client import ControlClient, ControlError
from page import viewer
from page.request_handler import OPERATIONS, RequestHandler
from page.view import plan_view
from page.viewer import Viewer
from running.timeline import Paper
from topo.fault import VERBS, ActiveFaults, FaultError
from topo.planfile import load_plan

PLAN = load_plan("tiny")


class Clock:
    """A run that notes whether it is held."""

    def __init__(self) -> None:
        self.paused = False
        self.steps = 0

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def step(self) -> None:
        self.steps += 1


def traced(lane: int, source: str, destination: str, ev: int, size: int, trimmed_at: str | None) -> dict[str, Any]:
    return {"source": source, "destination": destination, "ev": ev, "bytes": size, "trimmed_at": trimmed_at}


def made() -> tuple[RequestHandler, ActiveFaults, Clock]:
    board, clock = ActiveFaults(PLAN, Paper()), Clock()
    return RequestHandler([PLAN], traced, injector=board, pausable=clock, played=lambda: {"text": "…"}), board, clock


def test_faults_come_into_force_and_are_undone() -> None:
    handler, board, _ = made()
    assert handler.do({"op": "fault", "verb": "loss", "target": "p0l0-p0s1", "value": 20}) == {
        "done": "loss p0l0-p0s1 20 percent"
    }
    assert handler.do({"op": "fault", "verb": "drain", "target": "p1s0"})
    assert [fault.describe() for fault in board.faults()] == ["loss p0l0-p0s1 20 percent", "drain p1s0"]
    assert handler.do({"op": "state"})["faults"][0] == {"verb": "loss", "target": "p0l0-p0s1", "value": 20}
    handler.do({"op": "undo", "verb": "loss", "target": "p0l0-p0s1"})
    assert [fault.describe() for fault in board.faults()] == ["drain p1s0"]
    handler.do({"op": "heal"})
    assert board.faults() == []


def test_of_two_faults_of_one_verb_on_one_target_the_one_with_the_value_is_undone() -> None:
    handler, board, _ = made()
    undo = {"op": "undo", "verb": "loss", "target": "p0l0-p0s1"}
    for value in (10, 40, 60):
        handler.do({"op": "fault", "verb": "loss", "target": "p0l0-p0s1", "value": value})
    assert handler.do({**undo, "value": 10}) == {"done": "undone: loss p0l0-p0s1 10 percent"}
    with pytest.raises(ValueError, match="loss p0l0-p0s1 10 is not in force"):
        handler.do({**undo, "value": 10})
    assert [fault.value for fault in board.faults()] == [40, 60]
    handler.do(undo)
    assert [fault.value for fault in board.faults()] == [40]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"op": "fault", "verb": "explode", "target": "p0l0"}, "no fault 'explode'"),
        ({"op": "fault", "verb": "loss", "target": "p0l0-p0s1"}, r"must be a number between 0 and 100 \(got none\)"),
        ({"op": "fault", "verb": "loss", "target": "p0l0-p0s1", "value": float("nan")}, "value"),
        ({"op": "fault", "verb": "link-down", "target": "../../etc"}, "must be a link"),
        ({"op": "fault", "verb": "link-down", "target": "p0l0-p0s1", "seed": 3}, "seed is no key"),
        ({"op": "undo", "verb": "drain", "target": "p1s0"}, "not in force"),
        ({"op": "trace", "source": "h0", "destination": "h99", "ev": 1}, "h99"),
        ({"op": "trace", "source": "h0", "destination": "h3", "ev": -1}, "ev"),
        ({"op": "trace", "source": "h0", "destination": "h3", "ev": 1, "bytes": 1 << 40}, "bytes"),
        ({"op": "trace", "source": "h0", "destination": "h3", "ev": 1, "trimmed_at": "h0"}, "h0 is a host"),
        ({"op": "answer", "packet": 1}, "nothing is recorded here"),
        ({"op": "__init__"}, "no operation"),
        ({"op": "do"}, "no operation"),
        ({"op": ["fault"]}, "no operation"),
        ({}, "no operation"),
    ],
)
def test_a_wrong_request_says_what_is_wrong_and_changes_nothing(request_: Mapping[str, Any], why: str) -> None:
    handler, board, clock = made()
    with pytest.raises(ValueError, match=why):
        handler.do(request_)
    assert board.faults() == []
    assert (clock.paused, clock.steps) == (False, 0)


def test_a_run_in_virtual_time_is_held_stepped_and_let_go() -> None:
    handler, _, clock = made()
    handler.do({"op": "pause"})
    assert clock.paused
    handler.do({"op": "step"})
    handler.do({"op": "resume"})
    assert (clock.paused, clock.steps) == (False, 1)


def test_what_cannot_be_done_here_says_why() -> None:
    handler = RequestHandler([PLAN], traced, why_not="this is a plan")
    for op, why in (("heal", "this is a plan"), ("pause", "virtual time"), ("scenario", "no run")):
        with pytest.raises(ValueError, match=why):
            handler.do({"op": op})
    with pytest.raises(ValueError, match="this is a plan"):
        handler.do({"op": "fault", "verb": "link-down", "target": "p0l0-p0s1"})


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=100)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@given(
    st.sampled_from([op for op in OPERATIONS if op not in ("fault", "heal")]) | st.text(max_size=10),
    st.dictionaries(st.sampled_from(["verb", "target", "value", "lane", "source", "ev", "bytes", "x"]), VALUES),
)
def test_no_request_but_a_fault_changes_a_fault(op: str, fields: dict[str, Any]) -> None:
    handler, board, _ = made()
    before = board.inject("drain", "p0s0")
    with contextlib.suppress(ValueError):
        handler.do({"op": op, **fields})
    if not (op == "undo" and (fields.get("verb"), fields.get("target")) == ("drain", "p0s0")):
        assert board.faults() == [before]


@given(st.sampled_from([*VERBS, "", "x"]) | st.text(max_size=20), st.text(max_size=30) | VALUES, VALUES)
def test_every_fault_request_is_carried_out_whole_or_refused(verb: str, target: Any, value: Any) -> None:
    handler, board, _ = made()
    try:
        handler.do({"op": "fault", "verb": verb, "target": target, "value": value})
    except (ValueError, FaultError):
        assert board.faults() == []
    else:
        assert len(board.faults()) <= 1


def test_hostile_lines_on_the_socket_cost_nobody_else_anything() -> None:
    pytest.importorskip("uvicorn")
    handler, board, _ = made()
    shown = plan_view(PLAN)
    with Viewer(shown.document(), shown.runs, handler, lambda what: None) as view:
        with ControlClient(view.socket) as client:
            for op, arguments in (
                ("fault", {"verb": 5}),
                ("shutdown", {}),
                ("trace", {"lane": "x"}),
                ("state", {"x": 1}),
            ):
                with pytest.raises(ControlError):
                    client.call(op, **arguments)
            assert client.call("fault", verb="link-down", target="p0l0-p0s1") == {"done": "link-down p0l0-p0s1"}
        assert json.dumps([str(fault) for fault in board.faults()]) == '["link-down p0l0-p0s1"]'


def test_without_the_extra_a_view_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer, "find_spec", lambda name: None if name == "uvicorn" else object())
    shown = plan_view(PLAN)
    with pytest.raises(RuntimeError, match=r"needs uvicorn, which \./lab view installs"):
        Viewer(shown.document(), shown.runs, made()[0], lambda what: None)
