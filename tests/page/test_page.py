"""The page in a real browser, on a recorded run: its picture is the journal's fold, at every instant."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judging.run import Run
from page.view import View, plan_view, replay_view
from page.viewer import Viewer
from switch.engine import PortCounters
from tests.helpers.browser import Page
from tests.helpers.waiting import heeding_interrupts
from tests.page.conftest import answering
from tests.topo.topologies.shapes import SMALL
from topo.path import evs, hops, path_da
from topo.planfile import load_plan

Open = Callable[[], Page]
Shown = Callable[[View], Page]
SMALL_SLOWLY = [pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
"""A plan of each topology, pods first."""


def picture(run: Run, t_ns: int) -> dict[str, Any]:
    """The journal's own fold at an instant, by the readers that judge it."""
    last: dict[str, dict[str, Any]] = {"evs": {}, "samples": {}, "qps": {}}
    for line in run.lines:
        if line["t_ns"] > t_ns:
            break
        if line["kind"] == "ev":
            last["evs"][f"{line['node']} {line['qp']} {line['ev']}"] = line
        elif line["kind"] == "sample" and "qps" in line:
            last["samples"][line["node"]] = line
        elif line["kind"] == "qp":
            last["qps"][f"{line['node']} {line['qp']}"] = line
    faults = {
        (fault.verb, fault.target)
        for fault in run.faults
        if fault.start_ns <= t_ns and (fault.stop_ns is None or fault.stop_ns > t_ns)
    }
    steps = sum(line["t_ns"] <= t_ns for line in run.kind("step"))
    return {**last, "faults": faults, "steps": steps}


def seen(page: Page) -> dict[str, Any]:
    told = page.value("lab.picture()")
    faults = {(line["verb"], line["target"]) for line in told["faults"].values()}
    return {**{key: told[key] for key in ("evs", "samples", "qps", "steps")}, "faults": faults}


def test_the_picture_is_the_journals_fold_at_every_instant(run: Path, shown: Shown) -> None:
    recorded = Run.open(run)
    opened = shown(replay_view([run]))
    assert opened.value("lab.lanes[0].record.lines.length") == len(recorded.lines)
    times = [
        recorded.end_ns - recorded.start_ns,
        0,
        *(line["t_ns"] - recorded.start_ns for line in recorded.lines[::400]),
    ]
    for t_ns in [*times, *reversed(times)]:
        opened.value(f"lab.player.go({t_ns})")
        assert seen(opened) == picture(recorded, recorded.start_ns + max(t_ns, -1)), t_ns


def test_events_are_stepped_through_in_both_directions(run: Path, shown: Shown) -> None:
    recorded = Run.open(run)
    opened = shown(replay_view([run]))
    opened.value("lab.player.go(0)")
    begins = [fault.start_ns - recorded.start_ns for fault in recorded.faults]
    found = []
    for _ in range(400):
        opened.page.keyboard.press("n")
        found.append(opened.value("lab.player.t"))
    assert set(begins) <= set(found)
    assert found == sorted(found)
    at = opened.value("lab.player.t")
    opened.page.keyboard.press("p")
    assert opened.value("lab.player.t") < at


def test_play_moves_the_clock_and_pause_holds_it(run: Path, shown: Shown) -> None:
    opened = shown(replay_view([run]))
    opened.page.keyboard.press("Home")
    opened.page.keyboard.press("Space")
    opened.until("lab.player.t > 2e8")
    opened.page.keyboard.press("Space")
    held, frames = opened.value("[lab.player.t, lab.frames]")
    opened.until(f"lab.frames > {frames + 5}")
    assert opened.value("lab.player.t") == held
    opened.page.keyboard.press("+")
    opened.until("document.querySelector('#transport').textContent.includes('2×')")


@pytest.mark.parametrize("name", ["lab", "tiny", "pods", *SMALL_SLOWLY[1:]])
def test_paths_and_shrinking_usid_lists_are_those_of_the_plan(shown: Shown, name: str) -> None:
    plan = SMALL.get(name) or load_plan(name)
    opened = shown(plan_view(plan))
    names = [host.name for host in plan.hosts()]
    for source, destination in ((names[0], names[-2]), (names[0], names[1]), (names[-1], names[2])):
        told = opened.value(f"lab.lanes[0].scene.paths('{source}', '{destination}').map((path) => "
                            "({...path, lists: lab.lanes[0].scene.uSidLists(path)}))")  # fmt: skip
        first, last = plan.host(source), plan.host(destination)
        distinct = {path.ev: path for _, path in evs(plan, first, last)}
        for ev, path in evs(plan, first, last):
            known = opened.value(f"lab.lanes[0].scene.pathOfEv('{source}', '{destination}', {ev})")
            assert (known["ev"], known["plane"], known["via"]) == (path.ev, path.plane, path.via)
        assert [path["ev"] for path in told] == list(distinct)
        for row in told:
            path = distinct[row["ev"]]
            expected = [path_da(plan, path), *(hop.da_out for hop in hops(plan, path))]
            assert [one["address"] for one in row["lists"]] == [str(da) for da in expected]
            assert row["nodes"][1:-1] == [hop.switch.name for hop in hops(plan, path)]
        assert opened.value(f"lab.lanes[0].scene.pathOfEv('{source}', '{destination}', 0xC000 + 4000)") is None


def test_the_page_computes_no_evs_and_no_names_of_nodes() -> None:
    """The server sends them (`page.view`): another topology or another form of EVs is then no change of the page."""
    for path in sorted((Path(__file__).parents[2] / "page" / "browser").rglob("*.js")):
        text = path.read_text()
        for computed in (r"\b0xc000\b", r"\b0xffff\b", r"\b65536\b", "hosts_per_leaf", r"\}[ls]\$\{"):
            assert not re.search(computed, text.lower()), f"{path.name} computes {computed}"


LOOK = "import(new URL('run/look.js', document.querySelector('script[type=module]').src))"
"""The module that answers what is shown of a run at one instant."""


@pytest.mark.parametrize("order", [("good", "assumed_bad", "skip"), ("denied", "assumed_bad", "good")])
def test_a_path_is_as_bad_as_its_worst_queue_pair_says(shown: Shown, order: tuple[str, ...]) -> None:
    opened = shown(plan_view(load_plan("tiny")))
    ev = opened.value("lab.lanes[0].scene.paths('h0', 'h1')[0].ev")
    lines = [{"node": "h0", "peer": "h1", "qp": qp, "ev": ev, "new": new} for qp, new in enumerate(order)]
    other = [{**lines[0], "node": "h1", "peer": "h0", "new": "denied"}]
    states = f"{{evs: new Map({json.dumps([*enumerate(lines + other)])})}}"
    found = f"{LOOK}.then((look) => [...look.pathStates(lab.lanes[0].scene, {states}, 'h0', 'h1').values()])"
    assert [line["new"] for line in opened.value(found)] == ["assumed_bad" if "skip" in order else "denied"]


def test_every_way_to_drop_a_packet_that_switches_count_is_shown(shown: Shown) -> None:
    fields = [name for name in PortCounters._fields if name.startswith("drop_")]
    assert len(fields) > 5
    cable = {"a": "p0l0", "aPort": 3, "b": "p0s0", "bPort": 1}
    opened = shown(plan_view(load_plan("tiny")))
    told = {}
    for field in fields:
        samples = [f"{{ports: [{{port: 3, {field}: {count}}}]}}" for count in (1, 5)]
        told[field] = opened.value(
            f"{LOOK}.then((look) => "
            f"look.dropped({{switches: new Map([['p0l0', [{', '.join(samples)}]]])}}, {json.dumps(cable)}))"
        )
    assert told == {field: {"count": 4, "toB": True} for field in fields}


def test_the_keyboard_chooses_a_pair_and_walks_through_its_paths(shown: Shown) -> None:
    opened = shown(plan_view(load_plan("lab")))
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("h0 h5")
    opened.page.keyboard.press("Enter")
    opened.until("document.querySelectorAll('#panel tr[tabindex]').length === 16")
    assert opened.value("lab.choice.ev") == 0xC000
    opened.page.keyboard.press("]")
    opened.until("lab.choice.ev === 0xC001")
    opened.until("document.querySelector('#usids').textContent.includes('0x0000c001')")
    opened.page.keyboard.press("Escape")
    opened.until("!document.querySelector('#usids')")


@pytest.mark.parametrize("name", SMALL_SLOWLY)
def test_every_cable_between_switches_can_be_clicked(shown: Shown, name: str) -> None:
    """Where leaves are wired to each other as well: no cable lies on another, or behind a node."""
    plan = SMALL[name]
    opened = shown(plan_view(plan))
    told = opened.value(
        "import(new URL('drawing/layout.js', document.querySelector('script[type=module]').src)).then((layout) => {"
        "  const { scene, placed } = lab.lanes[0];"
        "  const clicked = ({ a, b }, share) => {"
        "    const [from, to] = [placed.at.get(a), placed.at.get(b)];"
        "    const x = from.x + (to.x - from.x) * share, y = from.y + (to.y - from.y) * share;"
        "    return layout.hit(scene, placed, x, y)?.cable?.name;"
        "  };"
        "  return scene.cables.filter((cable) => !cable.edge).map((cable) => ["
        "    cable.name, [0.25, 0.35, 0.45].some((share) => clicked(cable, share) === cable.name)]);"
        "})"
    )
    assert len(told) == plan.topology.fabric_links
    assert [cable for cable, found in told if not found] == []


@pytest.mark.parametrize("name", ["tiny", "lab", "rack", "wide", *SMALL_SLOWLY])
def test_every_plan_is_drawn_within_its_canvas_and_without_overlap(shown: Shown, name: str) -> None:
    opened = shown(plan_view(SMALL.get(name) or load_plan(name)))
    boxes = opened.value(
        "lab.lanes[0].scene.nodes.filter((node) => node.tier < 2 || !lab.lanes[0].placed.lanes[node.plane].folded)"
        ".map((node) => ({...lab.lanes[0].placed.at.get(node.name), ...lab.lanes[0].placed.sizes(node)}))"
    )
    width, height = opened.value("[lab.lanes[0].placed.width, lab.lanes[0].placed.height]")
    for index, one in enumerate(boxes):
        assert one["w"] <= one["x"] <= width - one["w"]
        assert one["h"] <= one["y"] <= height - one["h"]
        for other in boxes[index + 1 :]:
            apart_x, apart_y = abs(one["x"] - other["x"]), abs(one["y"] - other["y"])
            assert apart_x >= one["w"] + other["w"] or apart_y >= one["h"] + other["h"]


def test_a_viewer_comes_back_after_the_server_was_killed(run: Path, page: Open) -> None:
    view = replay_view([run])
    growing = run.parent / "growing"  # a run without a verdict goes on: the page stays connected
    (growing / "journal").mkdir(parents=True)
    for path in (run / "journal").iterdir():
        (growing / "journal" / path.name).write_bytes(path.read_bytes())
    with Viewer(view.document(), [growing], answering(view), lambda what: None) as viewer:
        opened = page()
        opened.open(viewer.address)
        count = len(Run.open(run).lines)
        opened.until(f"lab.lanes[0].record.lines.length === {count}")
        assert viewer.server_pid is not None
        subprocess.run(["kill", "-9", str(viewer.server_pid)], check=True)
        opened.until("document.querySelector('#link').textContent")
        opened.until("!document.querySelector('#link').textContent")
        with (growing / "journal" / "runner.jsonl").open("a") as file:
            file.write('{"t_ns":99000000000,"node":"runner","kind":"phase","name":"after","state":"start"}\n')
        opened.until(f"lab.lanes[0].record.lines.length === {count + 1}")
        opened.value("lab.player.go(99e9)")
        assert opened.value("lab.picture().phase") == "after"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach, as /tmp itself: pytest's own are closed to the user that serves."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGTERM, signal.SIGKILL))]
)
def test_the_command_prints_one_address_and_leaves_nothing_behind(run, open_folder, number: signal.Signals) -> None:
    pytest.importorskip("uvicorn")
    words = [sys.executable, "-m", "cli", "view", str(run)]
    environment = {**os.environ, "TMPDIR": str(open_folder)}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=heeding_interrupts
    ) as command:
        assert command.stdout is not None
        assert ": http://127.0.0.1:" in command.stdout.readline()
        (server,) = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        assert len(list(open_folder.iterdir())) == 1
        command.send_signal(number)
        assert command.wait(20) == {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGKILL: -9}[number]
        assert command.stdout.read() == ""
    end_s = time.monotonic() + 20
    while Path(f"/proc/{server}").exists() or list(open_folder.iterdir()):
        assert time.monotonic() < end_s
        time.sleep(0.02)
