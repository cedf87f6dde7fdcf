"""A run while it goes on, in a real browser: a cable cut by a click, paths abandoned, the undoing, the scenario."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judging.run import Run
from running.directory import find
from scenarios import library
from tests.helpers.browser import Page

ROOT = Path(__file__).parents[2]
Open = Callable[[], Page]


@contextmanager
def going_on(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A run with a page: its address, and its process."""
    line = [sys.executable, "-m", "cli", "run", *words, "--view", "--plain", "--runs", str(folder)]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            while not (found := re.search(r"view: (http://\S+)", said)):
                heard = process.stderr.readline()
                assert heard, said
                said += heard
            yield found[1], process
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def held(page: Open, folder: Path) -> Iterator[Page]:
    """The page of a run in virtual time that stands still and can be broken."""
    words = ["link-flap", "--plan", "tiny", "--world", "simulated", "--seed", "5", "--paused", "--until", "2"]
    with going_on(folder, *words) as (address, _):
        opened = page()
        opened.open(address)
        opened.until("lab.breaking.state?.breakable && lab.breaking.state.paused")
        yield opened


def click_cable(page: Page, name: str) -> None:
    """A click of the mouse on a cable, where no other cable is near: a third of the way up."""
    x, y = page.value(
        f"(() => {{ const lane = lab.lanes[0], cable = lane.scene.byCable.get('{name}');"
        " const a = lane.placed.at.get(cable.a), b = lane.placed.at.get(cable.b);"
        " const box = lane.sized.canvas.getBoundingClientRect();"
        " return [box.left + a.x + (b.x - a.x) * .3, box.top + a.y + (b.y - a.y) * .3]; })()"
    )
    page.page.mouse.click(x, y)
    page.until(f"lab.choice.cable?.name === '{name}'")


def step(page: Page, times: int) -> None:
    """So many samples of a held run, each seen on the page."""
    for _ in range(times):
        before = page.value("lab.lanes[0].record.lines.length")
        page.page.click("[data-op=step]")
        page.until(f"lab.lanes[0].record.lines.length > {before}")


def caught_up(page: Page, folder: Path) -> None:
    """Returns when the page has every line of a held run: its thread answers when the steps before are done."""
    for _ in range(2):
        page.page.evaluate("() => lab.breaking.act('state').then(() => true)")
    journal = find(folder, "latest") / "journal"
    count = sum(len(path.read_bytes().splitlines()) for path in journal.iterdir())
    page.until(f"lab.lanes[0].record.lines.length >= {count}")


def left_by(spine: str) -> str:
    """How many senders have given a spine's path up, as the page has it."""
    return f"Object.values(lab.picture().evs).filter((ev) => ev.via === '{spine}' && ev.new === 'assumed_bad').length"


def test_a_cable_is_cut_by_a_click_in_virtual_time_and_healed_and_saved(page: Open, tmp_path: Path) -> None:
    words = ["link-flap", "--plan", "tiny", "--world", "simulated", "--seed", "5", "--paused", "--until", "9"]
    with going_on(tmp_path, *words) as (address, process):
        opened = page()
        opened.open(address)
        opened.until("lab.breaking.state?.breakable && lab.breaking.state.paused")
        opened.page.keyboard.press("/")
        opened.page.keyboard.type("h0-p0l0")
        opened.page.keyboard.press("Enter")
        opened.until("document.querySelector('[data-verb=delay]')?.disabled")  # a NIC cannot do that, and says so
        opened.until("document.querySelector('#panel').textContent.includes('which has no traffic manager')")
        assert not opened.value("document.querySelector('[data-verb=port-down]').disabled")
        step(opened, 12)
        caught_up(opened, tmp_path)
        held = opened.value("lab.player.length")
        click_cable(opened, "p0l0-p0s1")
        opened.page.click("[data-verb=link-down]")
        opened.until("Object.keys(lab.picture().faults).length === 1")
        assert opened.value("lab.player.length") - held < 110e6  # the run stands still meanwhile
        step(opened, 14)
        assert opened.value(left_by("p0s1")) >= 2
        opened.page.click("[data-undo]")
        opened.until("Object.keys(lab.picture().faults).length === 0")
        opened.page.click("[data-key=save]")  # while the run is held: its process ends with it
        opened.until("lab.breaking.said.startsWith('wrote ')")
        opened.page.click("[data-op=resume]")
        opened.until(f"{left_by('p0s1')} === 0")
        opened.until_read()
        opened.page.keyboard.press("End")
        run = Run.open(find(tmp_path, "latest"))
        assert opened.value("lab.picture().steps") == len(run.kind("step"))
        assert [fault.title for fault in run.faults if fault.by_hand] == ["link-down p0l0-p0s1 (by hand)"]
        assert opened.console == []
        assert process.stdout is not None
        assert process.wait(120) in (0, 1, 3)
    assert library.find(str(find(tmp_path, "latest") / "played.py")).plan == "tiny"


def test_news_leaves_the_panel_where_a_reader_has_scrolled_it(page: Open, tmp_path: Path) -> None:
    with held(page, tmp_path) as opened:
        click_cable(opened, "p0l0-p0s1")
        opened.page.click("[data-verb=link-down]")  # has the keyboard's focus from here on
        opened.until("document.querySelector('[data-undo]')")
        panel = "document.querySelector('#panel')"
        there = opened.page.evaluate(f"() => {{ {panel}.scrollTop = 1e6; return {panel}.scrollTop; }}")
        assert there > 100
        sign = opened.value(f"{panel}.dataset.sign")
        opened.page.evaluate("() => lab.breaking.act('step').then(() => true)")
        opened.until(f"{panel}.dataset.sign !== {json.dumps(sign)}")
        assert opened.value("document.activeElement.matches('[data-verb=link-down]')")
        assert opened.value(f"{panel}.scrollTop") == there
        assert opened.console == []


def test_a_button_is_pressed_however_slowly_while_the_panel_has_news(page: Open, tmp_path: Path) -> None:
    with held(page, tmp_path) as opened:
        click_cable(opened, "p0l0-p0s1")
        opened.page.click("[data-verb=link-down]")
        opened.until("lab.breaking.state.faults.length === 1")
        opened.page.hover("[data-undo]")
        opened.page.mouse.down()
        before, frames = opened.value("[lab.lanes[0].record.lines.length, lab.frames]")
        opened.page.evaluate("() => lab.breaking.act('step').then(() => true)")
        opened.until(f"lab.lanes[0].record.lines.length > {before} && lab.frames > {frames} + 60")
        opened.page.mouse.up()
        opened.until("lab.breaking.state.faults.length === 0")
        assert opened.console == []


def test_the_keyboard_alone_breaks_and_heals(page: Open, tmp_path: Path) -> None:
    with held(page, tmp_path) as opened:
        keys = opened.page.keyboard

        def to(selector: str) -> None:
            """Tab from the panel's first button on."""
            keys.press("b")
            for _ in range(60):
                if opened.value(f"document.activeElement.matches('{selector}')"):
                    return
                keys.press("Tab")
            raise AssertionError(f"no way to {selector}")

        keys.press("/")
        keys.type("p0l0-p0s1")
        keys.press("Enter")
        opened.until("document.querySelector('[data-verb=loss]')")
        to('[data-key^="value loss"]')
        keys.press("Control+A")
        keys.type("25")
        keys.press("Enter")
        to("[data-verb=loss]")
        keys.press("Enter")
        opened.until("lab.breaking.state.faults.length === 1")
        assert opened.value("lab.breaking.state.faults[0].value") == 25
        to("[data-undo]")
        keys.press("Enter")
        opened.until("lab.breaking.state.faults.length === 0")
        keys.press("?")
        opened.until("document.querySelector('dialog[open]').textContent.includes('next or previous event')")
        keys.press("Escape")
        opened.until("!document.querySelector('dialog[open]')")
        dark = "document.documentElement.classList.contains('dark')"
        before = opened.value(dark)
        keys.press("d")
        opened.until(f"{dark} === {str(not before).lower()}")
        assert opened.console == []


RACE = ["link-flap", "--plan", "tiny", "--world", "simulated", "--seed", "5", "--transport", "mrc,roce"]


def click_in(page: Page, lane: int, name: str) -> None:
    """A click of the mouse on a node of one of a race's fabrics."""
    x, y = page.value(
        f"(() => {{ const lane = lab.lanes[{lane}], at = lane.placed.at.get('{name}');"
        " const box = lane.sized.canvas.getBoundingClientRect(); return [box.left + at.x, box.top + at.y]; })()"
    )
    page.page.mouse.click(x, y)
    page.until(f"lab.choice.node?.name === '{name}' && lab.choice.lane === {lane}")


def test_two_transports_race_in_virtual_time_and_are_held_stepped_and_broken_together(page: Open, tmp_path) -> None:
    with going_on(tmp_path, *RACE, "--paused", "--until", "4") as (address, process):
        opened = page()
        opened.open(address)
        opened.until("lab.breaking.state?.breakable && lab.breaking.state.paused")
        opened.until("lab.lanes.every((lane) => lane.record.lines.length > 3)")
        for _ in range(8):
            before = opened.value("lab.lanes.map((lane) => lane.record.length)")
            opened.page.click("[data-op=step]")
            opened.until(f"lab.lanes.every((lane, index) => lane.record.length > {before}[index])")
            one, other = opened.value("lab.lanes.map((lane) => lane.record.end)")
            assert abs(one - other) < 101e6  # a slice, of which each has some lines
        click_in(opened, 1, "p0s0")
        opened.until("document.querySelector('#panel').textContent.includes('break p0s0 in link-flap, roce')")
        opened.page.click("[data-verb=switch-stop]")
        opened.until("Object.keys(lab.picture(1).faults).length === 1")
        assert opened.value("lab.picture(0).faults") == {}
        opened.page.click("[data-op=resume]")
        opened.until_read()
        assert opened.console == []
        assert process.stdout is not None
        told = process.stdout.read()
        assert process.wait(120) in (0, 1, 3)
    again = re.search(r"again: ./lab view (\S+) (\S+)", told)
    assert again is not None
    mrc, roce = (Run.open(Path(path)) for path in again.groups())
    assert (mrc.options["transport"], roce.options["transport"]) == ("mrc", "roce")
    assert mrc.options["seed"] == roce.options["seed"] == 5
    assert [fault.verb for fault in roce.faults if fault.by_hand] == ["switch-stop"]
    assert not any(fault.by_hand for fault in mrc.faults)


def test_a_race_has_the_journals_of_each_run_alone(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with going_on(tmp_path / "race", *RACE, "--until", "3") as (_, process):
        assert process.stdout is not None
        process.stdout.read()
    for name in ("mrc", "roce"):
        words = [*RACE[:-1], name, "--until", "3", "--plain", "--runs", str(tmp_path / name)]
        subprocess.run([sys.executable, "-m", "cli", "run", *words], cwd=ROOT, capture_output=True, check=False)
        alone = Run.open(find(tmp_path / name, "latest"))
        (raced,) = [
            run
            for run in map(Run.open, sorted((tmp_path / "race" / "link-flap").iterdir()))
            if run.options["transport"] == name
        ]
        assert told(raced) == told(alone)
        last = [{at: rows[-1]["ports"] for at, rows in run.switch_samples.items()} for run in (raced, alone)]
        assert last[0] == last[1]
        assert max(len(samples) for samples in raced.switch_samples.values()) > 4


def test_sigterm_ends_both_runs_of_a_race_and_both_are_judged(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with going_on(tmp_path, *RACE, "--paused") as (_, process):
        runner = [
            tmp_path / "link-flap" / path / "journal" / "faults.jsonl" for path in os.listdir(tmp_path / "link-flap")
        ]
        end_s = time.monotonic() + 60
        while not all(path.exists() for path in runner):
            assert time.monotonic() < end_s
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        assert process.returncode != 0, said
    for path in (tmp_path / "link-flap").iterdir():
        assert json.loads((path / "verdict.json").read_text())["verdict"] == "unknown"


def told(run: Run) -> list[dict[str, object]]:
    """All but the runner's process id, how it was called, and what a page wants to know of switches and packets."""
    others = ("process", "options", "sampled", "memory")
    return [line for line in run.lines if line["kind"] not in others and "device" not in line]


def test_packets_of_the_log_move_and_a_trimmed_one_goes_under_the_microscope(page: Open, tmp_path: Path) -> None:
    words = ["incast", "--world", "simulated", "--seed", "2", "--until", "15.5", "--record-packets", "15..15.4"]
    subprocess.run(
        [sys.executable, "-m", "cli", "run", *words, "--plain", "--runs", str(tmp_path)],
        cwd=ROOT, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    view = [sys.executable, "-m", "cli", "view", str(find(tmp_path, "latest"))]
    with subprocess.Popen(view, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            opened = page()
            opened.open(process.stdout.readline().split(": ")[1].strip())
            opened.until_read()
            assert opened.value("lab.lanes[0].record.packets.length") > 100
            opened.value("lab.player.go(lab.lanes[0].record.packets[20].t_ns - lab.lanes[0].record.start)")
            opened.page.keyboard.press("/")
            opened.page.keyboard.type("h0 h5")
            opened.page.keyboard.press("Enter")
            opened.page.click("[data-key=trimmed]")
            seen = opened.until("lab.microscope.seen")
            packet = opened.value("lab.microscope.packet")
            assert packet["bytes"] < packet["bytes_in"]
            assert seen["trimmed_at"] == packet["node"]
            assert seen["reached"] == packet["dst"]
            cut = next(hop for hop in seen["hops"] if hop["switch"] == packet["node"])
            assert dict(cut["frame"])["Ethernet"]["bytes"] == packet["bytes"] == 128
            opened.until("document.querySelector('#panel').textContent.includes('trim_beyond')")
            assert opened.console == []
        finally:
            process.terminate()


@pytest.mark.root
def test_a_cable_is_cut_by_a_click_on_real_links_and_healed(page: Open, tmp_path: Path) -> None:
    words = ["link-flap", "--plan", "tiny", "--rate", "5", "--time", "0.9"]
    full, half = (
        "lab.picture().goodput_bps > 27e6",
        "10e6 < lab.picture().goodput_bps && lab.picture().goodput_bps < 25e6",
    )
    with going_on(tmp_path, *words) as (address, process):
        opened = page()
        opened.open(address)
        opened.until("lab.breaking.state?.breakable", 120)
        opened.until("lab.picture().steps > 4", 120)
        opened.until(f"lab.loadOf('p1l0-p1s1') > 0.3 && {full}")  # of 40 Mb/s: four hosts, two ports each
        click_cable(opened, "p1l0-p1s1")
        opened.page.click("[data-verb=link-down]")
        opened.until("lab.picture().faults['link-down p1l0-p1s1']")
        opened.until(f"{left_by('p1s1')} > 0")
        opened.until("lab.loadOf('p1l0-p1s1') < 0.02 && lab.loadOf('p1l0-p1s0') > 0.5")  # the other spine has it all
        opened.page.click("[data-undo='p1l0-p1s1']")
        opened.until("!lab.picture().faults['link-down p1l0-p1s1']")
        opened.until(f"{left_by('p1s1')} === 0")
        opened.until(f"lab.loadOf('p1l0-p1s1') > 0.3 && {full}")
        opened.page.keyboard.press("/")
        opened.page.keyboard.type("h0-p1l0")
        opened.page.keyboard.press("Enter")
        opened.page.click(
            "[data-verb=port-down]"
        )  # a ring is as fast as its slowest host, which has one port of two now
        opened.until(f"lab.loadOf('h0-p1l0') < 0.02 && lab.loadOf('h0-p0l0') > 0.7 && {half}")
        opened.page.click("[data-undo='h0.p1']")
        opened.until("Object.keys(lab.picture().faults).every((key) => !key.includes('port-down'))")
        opened.until(f"lab.loadOf('h0-p1l0') > 0.5 && {full}")
        opened.until("lab.lanes[0].record.flights.all.filter((flight) => flight.answered).length > 5")
        process.terminate()  # all has been seen: the rest of the run is not waited for
        opened.until("lab.lanes[0].record.over", 60)
        run = Run.open(find(tmp_path, "latest"))
        opened.page.keyboard.press("End")
        assert opened.value("lab.picture().steps") == len(run.kind("step"))
        assert any(fault.by_hand for fault in run.faults)
        assert opened.console == []
        assert process.stdout is not None
        process.stdout.read()


@pytest.mark.root
def test_a_lab_that_is_up_is_shown_and_broken_until_it_is_taken_down(page: Open, tmp_path: Path) -> None:
    environment = {**os.environ, "MRCLAB_NAME": "seen"}

    def lab(*words: str) -> str:
        line = [sys.executable, "-m", "cli", *words]
        done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    lab("up", "tiny")
    view = [sys.executable, "-m", "cli", "view"]
    try:
        with subprocess.Popen(view, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            opened = page()
            opened.open(process.stdout.readline().split(": ")[1].strip())
            lab("traffic", "write_bw", "h0", "h3", "--background")
            opened.until("lab.breaking.state?.breakable")
            opened.until("lab.picture().samples.h0?.qps.length > 0")
            opened.until("lab.lanes[0].at(lab.player.t).switches.size === 8")
            click_cable(opened, "p0l0-p0s0")
            opened.page.click("[data-verb=link-down]")
            opened.until("lab.picture().faults['link-down p0l0-p0s0']")
            assert "./lab capture p0l0-p0s0 --wireshark" in opened.value("document.querySelector('#panel').textContent")
            assert "link-down p0l0-p0s0" in lab("fault")
            opened.until(f"{left_by('p0s0')} > 0")
            lab("undo", "all")  # by somebody else, in a terminal
            opened.until("!lab.picture().faults['link-down p0l0-p0s0']")
            opened.page.click("[data-key=save]")
            opened.until("lab.breaking.said.startsWith('wrote ')")
            lab("down")
            assert process.wait(30) == 0
        assert "link-down" in (tmp_path / "played.py").read_text()
    finally:
        subprocess.run([*view[:3], "down"], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=120)
