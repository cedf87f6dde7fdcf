"""The live view of a run: planes, path health, goodput, and events as they happen.

The view reads the journals that the run writes; nothing is measured twice. Without a terminal, or with --plain, only
the events are printed, a line each.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from common import plain_file
from common.journal import Line
from common.terminal.printable import printable, printable_text
from common.terminal.progress import LINE_S, time_left
from common.terminal.standard_streams import write_error
from judging import units
from running.directory import RunDirectory
from running.options import heading
from scenarios import Scenario

REFRESH_S = 0.5
EVENTS_SHOWN = 8
BARS = "▁▂▃▄▅▆▇█"
HISTORY = 60
WINDOW_S = 10.0  # of wall time, over which packets per second and the pace of a run are counted


class RunProgress(Progress):
    """The bar of a run of `length_s`: its time, what is left by the wall clock, data packets per second of late."""

    def __init__(self, length_s: float, wall: Callable[[], float] = time.monotonic) -> None:
        columns = "{task.description}", BarColumn(), TimeRemainingColumn(), "{task.fields[speed]:,.0f} packets/s"
        super().__init__(*columns, get_time=wall, speed_estimate_period=WINDOW_S)
        self._time = self.add_task("", total=length_s, speed=0.0)
        self._packets = self.add_task("packets", total=None, visible=False)

    def see(self, seconds: float, packets: int, words: str = "") -> None:
        """The run's clock, in words as well, and the data packets that were sent in all."""
        self.update(self._packets, completed=packets)
        speed = self.tasks[self._packets].speed or 0.0
        self.update(self._time, completed=seconds, description=words, speed=speed)


class Tail:
    """New whole lines of all journals of a run since the last call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def lines(self) -> list[Line]:
        """The lines written since the last call, in the order of the files."""
        lines: list[Line] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            with plain_file.open_plain(path) as file:
                file.seek(self._offsets.get(path, 0))
                data = file.read(plain_file.LINE_BYTES_MAX)  # what is left comes with the next call
            end = data.rfind(b"\n") + 1
            self._offsets[path] = self._offsets.get(path, 0) + end
            for part in data[:end].splitlines():
                try:
                    lines.append(plain_file.parse_json(part))
                except ValueError:
                    continue  # judging reports a bad line
        return lines


class Picture:
    """The latest state of a run, folded from its lines."""

    def __init__(self) -> None:
        self.samples: dict[str, tuple[Line, Line]] = {}
        self.bad: dict[tuple[str, Any, Any], Line] = {}
        self.goodput_bps: deque[float] = deque(maxlen=HISTORY)
        self.planes_bps: dict[int, float] = {}
        self.sent: dict[str, int] = {}  # data packets by host; a queue pair takes its count with it

    def take(self, lines: list[Line]) -> None:
        """Fold new lines in; rates are between a host's last two samples."""
        for line in lines:
            if line["kind"] == "sample" and "qps" in line:
                previous = self.samples.get(line["node"])
                self.samples[line["node"]] = (previous[1] if previous else line, line)
                self.sent[line["node"]] = max(self.sent.get(line["node"], 0), total(line, "data_packets"))
            elif line["kind"] == "ev":
                key = (line["node"], line.get("qp"), line.get("ev"))
                if str(line.get("new", "")).upper() in ("ASSUMED_BAD", "DENIED"):
                    self.bad[key] = line
                else:
                    self.bad.pop(key, None)
        goodput, planes = 0.0, dict.fromkeys(self.planes_bps, 0.0)
        for before, after in self.samples.values():
            span_ns = after["t_ns"] - before["t_ns"]
            if span_ns <= 0:
                continue
            goodput += (total(after, "acked_bytes") - total(before, "acked_bytes")) * 8e9 / span_ns
            earlier = {port["port"]: port for port in before["ports"]}
            for port in after["ports"]:
                sent = port["tx_bytes"] - earlier.get(port["port"], port)["tx_bytes"]
                planes[port["plane"]] = planes.get(port["plane"], 0.0) + sent * 8e9 / span_ns
        self.goodput_bps.append(goodput)
        self.planes_bps = dict(sorted(planes.items()))


def total(line: Line, counter: str) -> int:
    """A counter of all queue pairs of a host, from its `sample` line."""
    return sum(int(qp.get(counter, 0)) for qp in line["qps"])


def sparkline(values: deque[float]) -> str:
    """A bar for each value, the highest for the greatest. A negative value, as when a queue pair goes, counts as 0."""
    top = max(values, default=0.0) or 1.0
    return "".join(BARS[max(0, min(len(BARS) - 1, int(value / top * (len(BARS) - 1))))] for value in values)


class Watcher:
    """Shows a run while it is entered. `tell` takes the runner's events."""

    def __init__(self, console: Console, scenario: Scenario, directory: RunDirectory, plain: bool = False) -> None:
        self._console = console
        self._scenario = scenario
        self._directory = directory
        self._plain = plain or not console.is_terminal
        self._events: deque[str] = deque(maxlen=EVENTS_SHOWN)
        self.seconds: Callable[[], float | None] = lambda: None
        self._picture = Picture()
        self._tail = Tail(directory.journals)
        self._port_rate_bps = 0.0
        self._pace = 1.0
        self._length_s = 0.0
        self._progress = RunProgress(0.0)
        self._hosts = 0
        self._ended = threading.Event()
        self._live: Live | None = None
        self._thread = threading.Thread(target=self._refresh, name="live", daemon=True)

    def __enter__(self) -> Watcher:
        if not self._plain:
            self._live = Live(self._draw(), console=self._console, auto_refresh=False)
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._live is not None:
            self._live.update(self._draw(), refresh=True)
            self._live.stop()

    def options(self, options: Mapping[str, Any], lasts_s: float = 0.0) -> None:
        """Print the seed and what else was chosen first: they repeat the run. `lasts_s` is about how long a run takes
        on its clock that ends with its work."""
        self._port_rate_bps = float(options.get("port_rate_bps", 0))
        self._pace = float(options.get("pace", 1.0))
        self._length_s = lasts_s or sum(options.get("phases", {}).values()) * self._pace
        self._progress = RunProgress(self._length_s)
        self._hosts = int(options.get("hosts", 0))
        self._console.print(Text(heading(options), style="dim"), soft_wrap=True)

    def tell(self, event: str) -> None:
        """An event of the run: printed or shown among the last, with the time that the report will give it.

        `seconds` is the run's clock; it shows nothing before the first phase, and then nothing stands before events.
        """
        seconds = self.seconds()
        event = printable_text(event)  # it may quote a program's last words
        stamp = f"{'' if seconds is None else units.lasting(seconds * units.SECOND_NS, self._pace, 2):>9}  {event}"
        if self._plain:
            self._console.print(stamp, highlight=False, soft_wrap=True, markup=False)
        self._events.append(stamp)

    def _refresh(self) -> None:
        began_s = time.monotonic()
        while not self._ended.wait(LINE_S if self._live is None else REFRESH_S):
            if self._live is None:
                self._say_progress(time.monotonic() - began_s)
                continue
            self._picture.take(self._tail.lines())
            self._live.update(self._draw(), refresh=True)

    def _say_progress(self, took_s: float) -> None:
        """A line without a terminal: how far the run is, and the time that is left at its pace so far."""
        seconds = self.seconds()
        if seconds is None:
            write_error(f"mrclab: preparing for {took_s:.0f} s")
        else:
            write_error(f"mrclab: {self._time(seconds)}{time_left(took_s, seconds, self._length_s)}")

    def _time(self, seconds: float) -> str:
        """A time of the run, of all that it has."""
        now, whole = (units.lasting(s * units.SECOND_NS, self._pace) for s in (seconds, self._length_s))
        return f"{now.split()[0]} of {whole}"

    def _draw(self) -> RenderableType:
        picture = self._picture
        now_bps = picture.goodput_bps[-1] if picture.goodput_bps else 0.0
        top = Text.assemble(
            ("goodput ", "dim"), (f"{now_bps / 1e6:8.1f} Mb/s  ", "bold"), (sparkline(picture.goodput_bps), "cyan")
        )
        if (seconds := self.seconds()) is not None:
            self._progress.see(seconds, sum(picture.sent.values()), self._time(seconds))
        planes = Table.grid(padding=(0, 2))
        full = self._port_rate_bps * self._hosts or 1.0
        for plane, bps in picture.planes_bps.items():
            bar = ProgressBar(total=full, completed=min(bps, full), width=40)
            planes.add_row(f"plane {plane}", bar, f"{bps / 1e6:.1f} Mb/s")
        broken = sorted({f"{line.get('plane')}/{line.get('via') or 'local'}" for line in picture.bad.values()})
        health = Text(f"{len(picture.bad)} paths not good" + (f": {', '.join(broken[:8])}" if broken else ""))
        health.stylize("red" if broken else "green")
        events = Text("\n".join(self._events), style="dim")
        return Panel(
            Group(self._progress, top, planes, health, events),
            title=Text(printable(self._scenario.title)),
            title_align="left",
        )
