"""Parts of the page in Chromium, each on a few journal lines; what it starts from; colours for people who see fewer."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from page.microscope import Microscope
from page.request_handler import RequestHandler
from page.scene import all_refusals, looks, refusals, scene, verbs
from page.view import View, plan_view
from page.viewer import Viewer
from running.timeline import Paper
from tests.helpers import browser as browsers
from tests.page.conftest import answering
from topo.fault import VERBS, ActiveFaults, targets
from topo.graph import links
from topo.planfile import load_plan

TINY = load_plan("tiny")
PLAN = replace(TINY, packets=replace(TINY.packets, pmtu_bytes=1024))
S = 1_000_000_000
MS = 1_000_000
Line = dict[str, Any]
Open = Callable[[], browsers.Page]


@pytest.fixture(scope="module")
def opened(pages: Open) -> Iterator[browsers.Page]:
    """The page of a plan, whose lines the tests make up."""
    view = plan_view(PLAN)
    with Viewer(view.document(), view.runs, answering(view), lambda what: None) as viewer:
        page = pages()
        page.open(viewer.address)
        page.until_read()  # the server's word that the lines begin would clear what a test has told before it
        yield page
        assert page.console == []


def told(page: browsers.Page, lines: list[Line], t_ns: int) -> None:
    """The page's only lines from now on, and the time that it shows."""
    text = json.dumps(sorted(lines, key=lambda line: line["t_ns"]))
    page.value(f"(lab.lanes[0].record.clear(), lab.lanes[0].record.add({text}), lab.player.go({t_ns}))")


def about(page: browsers.Page, name: str) -> dict[str, str]:
    """What the panel says of a node or a cable."""
    page.value(f"(lab.choice.find('{name}', lab.lanes[0].scene), lab.changed())")
    page.until(f"document.querySelector('#panel h2')?.textContent === '{name}'")
    rows = page.value(
        "[...document.querySelectorAll('#panel tr')].map((row) => [...row.children].map((c) => c.innerText))"
    )
    return {row[0]: row[1] for row in rows if len(row) == 2}


def host(t_ns: int, sent: int) -> Line:
    qps = [{"qp": 17, "peer": "h3", "acked_bytes": sent}]
    ports = [{"port": 1, "plane": 0, "tx_bytes": sent, "rx_bytes": 0}]
    return {"t_ns": t_ns, "node": "h0", "kind": "sample", "qps": qps, "ports": ports}


def switch(t_ns: int, name: str, port: int, sent: int, drops: int = 0) -> Line:
    rows = [{"port": port, "tx_bytes": sent, "rx_bytes": 0, "queue_bytes": 0, "drop_loss": drops}]
    return {"t_ns": t_ns, "node": name, "kind": "sample", "device": name, "ports": rows}


def fault(t_ns: int, state: str, value: float, node: str = "lab") -> Line:
    arguments = {"value": value}
    return {
        "t_ns": t_ns, "node": node, "kind": "fault", "verb": "loss", "target": "p0l0-p0s0", "state": state,
        "arguments": arguments,
    }  # fmt: skip


def test_rates_are_not_shown_for_ever_after_the_last_sample(opened: browsers.Page) -> None:
    """An agent that has ended is not measured; a switch that writes nothing has counted nothing."""
    lines = [host(second * S, second * 1_000_000) for second in range(5)]
    lines += [switch(second * S, "p0l0", 3, second * 1_000_000) for second in range(5)]
    lines += [{"t_ns": second * S, "node": "lab", "kind": "cpu"} for second in range(5, 20)]
    told(opened, lines, 4 * S)
    assert opened.value("lab.picture().goodput_bps") == 8e6
    assert opened.value("[lab.loadOf('h0-p0l0'), lab.loadOf('p0l0-p0s0')].every((load) => load > 0)")
    told(opened, lines, 6 * S)  # a sample may be late
    assert opened.value("lab.picture().goodput_bps") == 8e6
    told(opened, lines, 19 * S)
    assert opened.value("[lab.picture().goodput_bps, lab.loadOf('h0-p0l0'), lab.loadOf('p0l0-p0s0')]") == [
        None, None, 0,
    ]  # fmt: skip
    assert about(opened, "h0-p0l0")["load"] == "not measured here"
    assert about(opened, "h0")["port 1"] == "not measured here"


def test_a_sample_at_an_odd_time_makes_no_other_sample_old(opened: browsers.Page) -> None:
    """As at the end of a run."""
    lines = [host(t_ns, t_ns) for t_ns in (0, S, 2 * S, 2 * S + MS)]
    told(opened, [*lines, {"t_ns": 3 * S, "node": "runner", "kind": "cpu"}], 3 * S)
    assert opened.value("lab.picture().goodput_bps") == 8e9


def test_two_faults_of_one_verb_on_one_cable_are_two(opened: browsers.Page) -> None:
    lines = [fault(0, "begin", 10), fault(S, "begin", 40), fault(2 * S, "end", 40), fault(3 * S, "end", 10)]

    def values() -> list[float]:
        return [line["arguments"]["value"] for line in opened.value("lab.picture().faults").values()]

    for t_ns, expected in ((0, [10]), (S, [10, 40]), (2 * S, [10]), (3 * S, [])):
        told(opened, lines, t_ns)
        assert sorted(values()) == expected
    spans = "import(new URL('drawing/slider.js', document.querySelector('script[type=module]').src))"
    spans += ".then((slider) => slider.spansOfFaults(lab.lanes[0].record).map(({ start, stop }) => [start, stop]))"
    assert opened.value(spans) == [[0, 3 * S], [S, 2 * S]]


def test_a_fault_that_is_in_force_twice_ends_with_its_second_end(opened: browsers.Page) -> None:
    """With two seeds of chance; the runner says each fault before the lab does, which makes it no second one."""
    runner, lab = "runner", "lab"
    lines = [fault(0, "begin", 10, runner), fault(1, "begin", 10, lab), fault(S, "end", 10, runner)]
    lines += [fault(S + 1, "end", 10, lab), fault(2 * S, "begin", 10, lab), fault(3 * S, "begin", 10, lab)]
    lines += [fault(4 * S, "end", 10, lab), fault(5 * S, "end", 10, lab)]
    lines += [fault(6 * S, "begin", 10, runner), fault(7 * S, "end", 10, lab)]  # undone by hand
    for t_ns, expected in (
        (2, 1),
        (S, 0),
        (S + 2, 0),
        (2 * S, 1),
        (3 * S, 1),
        (4 * S, 1),
        (5 * S, 0),
        (6 * S, 1),
        (7 * S, 0),
    ):
        told(opened, lines, t_ns)
        assert len(opened.value("lab.picture().faults")) == expected, t_ns


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([("runner", "begin"), ("lab", "end"), ("lab", "begin")], 1),
        ([("runner", "begin"), ("runner", "end"), ("lab", "begin"), ("lab", "end")], 0),
        ([("runner", "begin"), ("lab", "begin"), ("lab", "end")], 1),
    ],
)
def test_in_virtual_time_each_line_of_the_lab_is_a_change_by_hand(said, left, opened) -> None:
    options: Line = {"t_ns": 0, "node": "runner", "kind": "options", "world": "simulated"}
    lines = [fault(place * S, state, 20, node) for place, (node, state) in enumerate(said, 1)]
    told(opened, [options, *lines], len(said) * S)
    assert len(opened.value("lab.picture().faults")) == left


def test_where_no_two_samples_differ_nothing_is_said_of_drops_and_rates(opened: browsers.Page) -> None:
    """As at the end of a run in virtual time, of which the totals alone are known."""
    told(opened, [switch(S, "p0l0", 3, 1_000_000, drops=346)], S)
    assert about(opened, "p0l0-p0s0")["dropped"] == "not measured here"
    assert about(opened, "p0l0")["port 3"] == "not measured here"
    told(opened, [switch(S, "p0l0", 3, 0), switch(2 * S, "p0l0", 3, 1_000_000)], 2 * S)
    assert about(opened, "p0l0-p0s0")["dropped"] == "none"
    assert about(opened, "p0l0")["port 3"] == "sends 8.00 Mb/s, receives 0.00 b/s"
    told(opened, [switch(S, "p0l0", 3, 0), switch(2 * S, "p0l0", 3, 1_000_000, drops=4)], 2 * S)
    assert about(opened, "p0l0-p0s0")["dropped"] == "4 since the previous sample"


def test_a_cable_that_is_not_sampled_is_dotted_and_an_idle_one_is_not(opened: browsers.Page) -> None:
    """In virtual time a single sample says nothing of a rate. On real links none follows where nothing is counted."""
    seen = (
        "(() => { const lane = lab.lanes[0], { ctx } = lane.sized, set = ctx.setLineDash, found = [];"
        " ctx.setLineDash = (dash) => { found.push(dash.join()); set.call(ctx, dash); };"
        " lane.drawn = ''; lab.changed(); return new Promise((done) => requestAnimationFrame(() =>"
        " requestAnimationFrame("
        "() => { ctx.setLineDash = set; done(found.includes('1,5')); }))); })()"
    )
    options: Line = {"t_ns": 0, "node": "runner", "kind": "options", "world": "simulated"}
    hosts = [{**host(second * S, second * 1_000_000), "node": f"h{n}"} for n in range(4) for second in (0, 1, 2)]
    for line in hosts:
        line["ports"] = [
            {"port": p + 1, "plane": p, "tx_bytes": line["t_ns"], "rx_bytes": 0} for p in range(TINY.planes)
        ]
    once = [switch(S, one.name, 1, 0) for one in TINY.switches()]
    twice = [
        {**switch(second * S, one.name, 1, 0), "ports": [{"port": p, "tx_bytes": 0} for p in range(1, 9)]}
        for one in TINY.switches()
        for second in (0, 1, 2)
    ]
    rows = [{**line, "ports": [{"port": p, "tx_bytes": 0} for p in range(1, 9)]} for line in once]
    told(opened, [options, *hosts, *rows], 2 * S)
    assert opened.value("lab.loadOf('p0l0-p0s0')") is None
    assert opened.value(seen)
    for lines in ([options, *hosts, *twice], [*hosts, *rows]):
        told(opened, lines, 2 * S)
        assert opened.value("lab.loadOf('p0l0-p0s0')") == 0
        assert not opened.value(seen)
    told(opened, [], 0)  # a plan, of which nothing is sampled
    assert not opened.value(seen)


def packet(t_ns: int, arrives_ns: int | None, fate: str = "sent") -> Line:
    line = {
        "t_ns": t_ns, "kind": "packet", "packet": 8, "node": "p0l0", "to": "p0s0", "fate": fate, "psn": 1, "qpn": 17,
    }  # fmt: skip
    line |= {"src": "h0", "dst": "h3", "ev": 0xC000, "op": "WRITE_ONLY", "bytes": 1200, "bytes_in": 1200, "port_in": 1}
    return {**line, "arrives_ns": arrives_ns, "queued_ns": None}


def test_a_packet_is_drawn_all_along_a_late_cable(opened: browsers.Page) -> None:
    delay_ns = 10 * PLAN.base_rtt_ns
    sent, begun = packet(0, delay_ns), {"t_ns": 0, "node": "runner", "kind": "cpu"}
    shown = (
        "import(new URL('drawing/packets.js', document.querySelector('script[type=module]').src)).then((packets) => {"
        " const lane = lab.lanes[0], t = lab.player.t;"
        " return packets.shownPackets(lane.place(lab.unit), lane.scene, { record: lane.record, t, pair: null })"
        ".map(({ line, spot }) => [line.fate, spot.y]); })"
    )
    ends = [opened.value(f"lab.lanes[0].placed.at.get('{name}').y") for name in ("p0l0", "p0s0")]
    for share in (0.01, 0.5, 0.99):
        told(opened, [begun, sent, packet(2 * delay_ns, None, "loss")], int(share * delay_ns))
        ((fate, y),) = opened.value(shown)
        assert fate == "sent"
        assert y == pytest.approx(ends[0] + (ends[1] - ends[0]) * share, abs=0.01)
    late_ns = 2 * delay_ns + 2 * PLAN.base_rtt_ns
    told(opened, [begun, sent, packet(2 * delay_ns, None, "loss"), {**begun, "t_ns": late_ns}], late_ns)
    assert opened.value(shown) == []  # the sign of a drop stays for a round trip alone


def test_a_made_up_packet_is_as_large_as_the_plans(opened: browsers.Page) -> None:
    opened.value("(lab.choice.find('h0 h3', lab.lanes[0].scene), lab.changed())")
    opened.page.click("[data-key=look]")
    assert dict(opened.until("lab.microscope.seen")["sent"])["payload"] == {"bytes": 1024}


def test_the_charts_are_drawn_again_when_their_canvas_was_cleared(run: Path, shown) -> None:
    """A change of the window's height by less than their rounding clears the canvas, whose size stays the same."""
    opened = shown([run])
    # How many pixels have ink: the bytes of two pictures may differ, since a browser smooths edges as it likes.
    ink = (
        "(({ canvas, copy = new OffscreenCanvas(canvas.width, canvas.height) }) => {"
        " const ctx = copy.getContext('2d', { willReadFrequently: true });"
        " ctx.drawImage(canvas, 0, 0);"
        " return ctx.getImageData(0, 0, copy.width, copy.height).data.filter((v, at) => at % 4 === 3 && v).length;"
        "})(lab.chart)"
    )
    drawn = opened.until(ink)
    assert opened.value(f"(lab.charts.fit(document.querySelector('#charts')), {ink})") == 0
    opened.until(f"{ink} > {0.9 * drawn}")


def test_the_microscope_of_an_exported_file_asks_no_server(run: Path, shown) -> None:
    opened = shown([run])
    start = opened.value("lab.lanes[0].record.start")
    path = {"port_in": None, "payload": 1024, "va": 0, "trimmed": False}
    sent = {**packet(start + S, start + S + 5), **path, "node": "h0", "to": "p0l0"}
    came = {**packet(start + S + MS, None, "received"), **path, "node": "h3", "to": None}
    opened.value(f"(lab.player.go(0), lab.lanes[0].record.add({json.dumps([sent, came])}))")
    opened.value("(lab.choice.find('h0 h3', lab.lanes[0].scene), lab.changed())")
    opened.page.click("[data-key=next]")
    opened.until("lab.microscope.packet && document.querySelector('#receiver')")
    rows = opened.value(
        "Object.fromEntries([...document.querySelectorAll('#receiver tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText)))"
    )
    assert rows["received"] == "1200 B, 1.00 ms after it left"
    assert rows["placed"].startswith("1024 B at address 0x0")
    assert "./lab view" in rows["answered"]
    assert "looking …" not in opened.value("document.querySelector('#panel').textContent")


@pytest.fixture
def live(pages: Open, tmp_path: Path) -> Iterator[tuple[str, ActiveFaults, Path]]:
    """The page of a run that goes on until it has a verdict: its address, its faults and its folder."""
    run = tmp_path / "run"
    (run / "journal").mkdir(parents=True)
    for folder in (run, run / "journal"):
        folder.chmod(0o755)
    lines = [{"t_ns": second * S, "node": "runner", "kind": "cpu"} for second in range(4)]
    (run / "journal" / "runner.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = View("a run", "live", "live", (TINY,), (run,), ({},), ("a run",))
    faults = ActiveFaults(TINY, Paper())
    handler = RequestHandler(view.plans, Microscope(view.plans), injector=faults, played=lambda: {"file": "played.py"})
    with Viewer(view.document(), view.runs, handler, lambda what: None) as viewer:
        yield viewer.address, faults, run


def test_undo_beside_a_fault_undoes_that_one(live: tuple[str, ActiveFaults, Path], pages: Open) -> None:
    address, faults, _ = live
    faults.inject("loss", "p0l0-p0s0", 10)
    faults.inject("loss", "p0l0-p0s0", 40)
    opened = pages()
    opened.open(address)
    opened.until("document.querySelectorAll('[data-undo]').length === 2")
    opened.page.click("#panel .row:has-text('loss p0l0-p0s0 10') [data-undo]")
    opened.until("document.querySelectorAll('[data-undo]').length === 1")
    assert [fault.value for fault in faults.faults()] == [40]
    assert opened.console == []


def test_a_live_run_that_is_over_stays_at_its_end_and_asks_nothing(live, pages: Open) -> None:
    address, faults, run = live
    faults.inject("drain", "p0s0")
    opened = pages()
    opened.open(address)
    opened.until("lab.player.t === 3e9 && document.querySelector('[data-key=save]:enabled')")
    (run / "verdict.json").write_text("{}")
    opened.until_read()
    opened.until("document.querySelector('#transport').textContent.includes('▶event')")  # nothing is being followed
    opened.page.keyboard.press("End")
    opened.until("document.querySelector('[data-key=save]:disabled')")
    assert opened.value("document.querySelector('[data-key=save]').title") == "the run is over"
    assert opened.value("document.querySelectorAll('[data-undo]').length") == 0
    assert opened.value("lab.player.t") == 3e9
    opened.page.keyboard.press("Space")  # play: a run that has ended begins anew
    opened.until("lab.player.playing && lab.player.t < 3e9")
    assert opened.console == []


PAGE = Path(__file__).parents[2] / "page" / "browser"
MEANINGS = ("busy", "broken", "warn", "gone", "good")
# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0; for linear RGB.
SEEN = {
    "everybody": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ @ np.ones(3)


def themes() -> dict[str, dict[str, str]]:
    style = (PAGE / "style.css").read_text()
    light, dark = re.findall(r":root(?:\.dark)? \{(.*?)\}", style, re.DOTALL)
    return {name: dict(re.findall(r"--(\w+): (#\w{6})", text)) for name, text in (("light", light), ("dark", dark))}


def linear(colour: str) -> np.ndarray:
    """sRGB (IEC 61966-2-1) to linear light."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIE 1976 L*a*b* of linear RGB."""
    x, y, z = ((t ** (1 / 3)) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in XYZ @ light / WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """WCAG 2.1: the ratio of relative luminances."""
    bright, dim = sorted((float((XYZ @ linear(colour))[1]) for colour in (one, other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eyes", SEEN)
def test_what_means_something_else_looks_different_to_everybody(theme: str, eyes: str) -> None:
    colours = themes()[theme]
    seen = {name: lab(np.clip(SEEN[eyes] @ linear(colours[name]), 0, 1)) for name in MEANINGS}
    for one, other in combinations(MEANINGS, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)  # some four just noticeable differences


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_and_lines_stand_out_from_the_paper(theme: str) -> None:
    colours = themes()[theme]
    for paper in ("paper", "sheet"):
        assert contrast(colours["ink"], colours[paper]) >= 7
        assert contrast(colours["soft"], colours[paper]) >= 4.5
        for name in MEANINGS:
            assert contrast(colours[name], colours[paper]) >= 3, name  # of graphics (1.4.11)


def test_no_condition_and_no_sign_is_told_by_its_colour_alone() -> None:
    shapes = (PAGE / "drawing" / "shapes.js").read_text()
    drawn = re.findall(r"name: \"([\w -]+)\", colour: \"\w+\", draw: (\w+)", shapes)
    assert len(drawn) == len({draw for _, draw in drawn}) == 6
    conditions = re.findall(r"(\w+): \{ dash: \[([\d, ]+)\], colour: \"\w+\", sign: \"(.)\"", shapes)
    assert len(conditions) == 7
    signs = {name: sign for name, _, sign in conditions}
    assert len({(dash, sign) for _, dash, sign in conditions if sign != "✕"}) == 5
    assert [name for name, sign in signs.items() if sign == "✕"] == ["dead", "crashed"]  # a cable, a switch


@pytest.mark.parametrize("name", ["tiny", "lab", "rack", "wide", "pods"])
def test_every_node_has_a_place_of_its_own_and_every_cable_two_ends(name: str) -> None:
    plan = load_plan(name)
    told = scene(plan)
    places = {tuple(row[3:5]) for row in told["nodes"]}
    assert len(places) == len(told["nodes"]) == plan.host_count + plan.switch_count
    names = {row[0] for row in told["nodes"]}
    assert len(told["cables"]) == len(list(links(plan)))
    assert all(a in names and b in names for a, b, *_ in told["cables"])
    assert told == scene(plan)


def test_every_verb_is_told_with_how_it_looks() -> None:
    assert {verb["name"]: verb["looks"] for verb in verbs()} == {
        "link-down": "dead", "blackhole": "dead", "loss": "lossy", "delay": "late", "rate": "slow",
        "port-down": "dead", "optics-down": "dead", "switch-stop": "stopped", "switch-crash": "crashed",
        "switch-reboot": "crashed", "drain": "drained", "drain-port": "drained",
    }  # fmt: skip
    assert all(looks(verb) != "running" for verb in VERBS.values())


@pytest.mark.parametrize("kind", ["embedded", "bmv2", "linux"])
def test_what_a_kind_cannot_do_is_refused_with_the_reason(kind) -> None:
    plan = replace(load_plan("tiny"), switch=kind)
    told = all_refusals(plan)
    for key, verdicts in told.items():
        for verb, why in verdicts.items():
            spec = VERBS[verb]
            if kind not in spec.kinds:
                assert "cannot" in why, (key, verb)
    assert told[f"switch {kind}"].keys() == {verb.name for verb in VERBS.values() if verb.target == "switch"}


def test_refusals_are_those_of_the_fault_verbs_for_every_target() -> None:
    plan = load_plan("tiny")
    for verb in VERBS.values():
        possible = set(targets(plan, verb.name))
        for target in ("p0l0-p0s1", "h0-p0l0", "p0l1>p0s0", "p0l0>h0", "h0>p0l0", "h1.p1", "h1", "p1s0"):
            verdicts = refusals(plan, target)
            if verb.name in verdicts:
                assert (verdicts[verb.name] == "") == (target in possible), (verb.name, target)
