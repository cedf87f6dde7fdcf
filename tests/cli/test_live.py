"""The live view and the bar of a run: what they show of journals that are being written, also without a terminal."""

import io
import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.commands.run import run_command
from cli.live import Picture, RunProgress, Tail, Watcher, sparkline
from cli.main import parser
from judging.run import Run
from page import live
from running import fault_words
from running.directory import RunDirectory
from running.options import OPTIONS, Choices, heading
from running.spec import RunSpec
from running.transport_choice import TRANSPORTS
from scenarios import library
from topo.planfile import load_plan

Build = Callable[..., Run]


@pytest.fixture
def directory(made_up: Build, tmp_path: Path) -> RunDirectory:
    """The journals of a made-up run as they are at 15 s, while the link is down."""
    directory = RunDirectory.create(tmp_path, "smoke", 1)
    files: dict[str, list[str]] = defaultdict(list)
    for line in made_up(dip=0.5).lines:
        if line["t_ns"] <= 15 * 10**9:
            files[str(line["node"])].append(json.dumps(line))
    for node, lines in files.items():
        directory.journal(node).write_text("\n".join(lines) + "\n")
    return directory


def test_the_picture_is_of_the_last_two_samples_and_of_paths_that_are_bad_now(directory: RunDirectory) -> None:
    picture = Picture()
    picture.take(Tail(directory.journals).lines())
    # Four hosts, two planes of 8 Mb/s: 80 % acknowledged, 85 % sent, and half of both while the link is down.
    assert picture.goodput_bps[-1] == pytest.approx(4 * 2 * 8e6 * 0.8 * 0.5, rel=1e-3)
    assert picture.planes_bps == {plane: pytest.approx(4 * 8e6 * 0.85 * 0.5, rel=1e-3) for plane in (0, 1)}
    assert [(line["node"], line["via"]) for line in picture.bad.values()] == [("h0", "p0s1")]


def test_a_tail_gives_every_whole_line_once_and_leaves_a_torn_one_for_later(tmp_path: Path) -> None:
    file = tmp_path / "h0.jsonl"
    tail = Tail(tmp_path)
    file.write_text('{"t_ns": 1}\n{"t_ns"')
    assert tail.lines() == [{"t_ns": 1}]
    with file.open("a") as more:
        more.write(": 2}\n")
    assert tail.lines() == [{"t_ns": 2}]
    assert tail.lines() == []


def test_on_a_terminal_planes_health_goodput_and_events_are_drawn(directory: RunDirectory) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=110, color_system=None)
    with Watcher(console, library.find("smoke"), directory) as watcher:
        watcher.options({"port_rate_bps": 8_000_000, "hosts": 4, "seed": 7})
        watcher.tell("link-down p0l0-p0s1")
        watcher._picture.take(watcher._tail.lines())
    shown = text.getvalue()
    for words in ("seed=7", "25.6 Mb/s", "plane 0", "13.6 Mb/s", "1 paths not good: 0/p0s1", "link-down p0l0-p0s1"):
        assert words in shown, words


def test_without_a_terminal_events_are_lines(directory: RunDirectory) -> None:
    text = io.StringIO()
    with Watcher(Console(file=text, width=40), library.find("smoke"), directory) as watcher:
        watcher.seconds = lambda: 42.0
        watcher.tell("link-down " + "x" * 60)
    (line,) = text.getvalue().splitlines()
    assert line.endswith("s  link-down " + "x" * 60)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_does_not_obey_an_event(terminal: bool, directory: RunDirectory) -> None:
    """Such as the last words of a program that a user has written."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=110, color_system=None)
    with Watcher(console, library.find("smoke"), directory) as watcher:
        watcher.tell("h0 said \x1b]0;title\x07 [b]in\nbrackets[/b]")
    shown = text.getvalue()
    assert "\x1b]0;" not in shown
    assert "h0 said \N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER} [b]in" in shown
    assert "brackets[/b]" in shown


def test_the_title_of_a_scenario_is_no_markup(directory: RunDirectory) -> None:
    text = io.StringIO()
    scenario = replace(library.find("smoke"), title="All of [h0] and [/h1]")
    with Watcher(Console(file=text, force_terminal=True, width=110, color_system=None), scenario, directory):
        pass
    assert "All of [h0] and [/h1]" in text.getvalue()


def test_the_first_line_of_a_run_names_the_seed_and_what_is_not_as_usual() -> None:
    scenario = library.find("smoke")
    seven = Choices(transport=TRANSPORTS["roce"], plan=load_plan("tiny"), seed=7, world="simulated")
    short = replace(
        seven,
        short=True,
        overrides={"trimming.enabled": "false"},
        setting_changes={"selection": "single_path"},
        reconvergence_s=0.5,
        added_faults=(fault_words.parse("loss p0l1-p0s1 20 @1 for 2", scenario.phases),),
    )

    def first_line(choices: Choices) -> str:
        return heading(RunSpec(scenario, choices).options())

    chosen = "scenario=smoke  plan=tiny  transport=roce  world=simulated  seed=7  port_rate_bps=20000000"
    assert first_line(seven) == chosen
    line = first_line(short)
    assert line.startswith(chosen + "  short=True  reconvergence_s=0.5  setting_changes.selection=single_path  ")
    assert "  overrides.trimming.enabled=false  added_faults=['loss p0l1-p0s1 20" in line


def test_the_first_line_of_a_run_names_every_choice_that_the_user_has() -> None:
    """A new option is either told or follows from what is told."""
    follows = {
        "source", "plan_source", "settings", "queue_pairs", "single_plane", "priority_flow_control", "pace",
        "phases",
    }  # fmt: skip
    follows |= {"calibration", "host_rate_bps", "hardware_rate_bps", "base_rtt_ns", "jitter_ns", "fabric", "hosts"}
    follows |= {"delay_ns", "pmtu_bytes", "switches", "switch_kind", "python", "cpus", "version", "hashes", "key"}
    choices = Choices(transport=TRANSPORTS["mrc"], plan=load_plan("tiny"), seed=7)
    options = RunSpec(library.find("smoke"), choices).options()
    assert set(options) - follows == {one.stored for one in OPTIONS.values() if one.told is not False} - {""}


def test_a_sparkline_of_totals_that_fell_stays_at_the_bottom() -> None:
    assert sparkline(deque([-5.0, 0.0, 4.0, 8.0])) == "▁▁▄█"
    assert sparkline(deque()) == ""


def shown(progress: RunProgress) -> str:
    console = Console(width=100, file=StringIO(), record=True)
    console.print(progress)
    return console.export_text()


def test_what_is_left_and_the_packets_a_second_are_those_of_late() -> None:
    now_s = [100.0]
    progress = RunProgress(60.0, lambda: now_s[0])
    assert "0 packets/s" in shown(progress)
    for second in range(101):
        progress.see(second / 2, 1000 * second if second < 50 else 50_000 + 5000 * (second - 50), "now")
        now_s[0] += 1.0
    assert progress.tasks[0].time_remaining == pytest.approx(20.0, abs=1)
    assert "now" in shown(progress)
    assert "0:00:20" in shown(progress)
    assert "5,000 packets/s" in shown(progress)


class OpenedError(Exception):
    """The page was opened."""


def test_the_page_of_a_race_tells_in_plain_text(monkeypatch, tmp_path, capsys) -> None:
    def opened(runs: Any, tell: Callable[[str], None], **_: Any) -> None:
        assert [run.options["transport"] for run in runs] == ["mrc", "roce"]
        assert len({run.options["seed"] for run in runs}) == 1
        tell("the server of [h0] and [/h1] said \x1b[2J")
        raise OpenedError

    monkeypatch.setattr("cli.commands.run.want_compiled", lambda *_, **__: None)
    monkeypatch.setattr(live, "RunView", opened)
    words = ["run", "smoke", "--world", "simulated", "--view", "--transport", "mrc,roce", "--runs", str(tmp_path)]
    with pytest.raises(OpenedError):
        run_command(parser("run").parse_args(words))
    assert "the server of [h0] and [/h1] said \N{REPLACEMENT CHARACTER}[2J" in capsys.readouterr().out
