"""A run while it goes on, or a lab that is up: what the page sees of it, and what it may do to it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import plain_file
from common.client import ControlError
from common.journal import Journal
from common.quoting import command
from endpoint import acknowledges
from judging import Run
from page.feed import PACKETS
from page.microscope import Microscope
from page.pacing import OVER, Abreast, Closing, PacedInjector, PacedWorld, Pacers, RunPacer
from page.played import played
from page.request_handler import RequestHandler
from page.view import View, title
from page.viewer import Viewer
from running import RunDirectory
from running.view import RealLab
from running.worlds import EmulatedWorld, SimulatedWorld, World
from scenarios import SAMPLE_S
from topo import Plan
from topo.emulation import Lab, LabError
from topo.fault import Fault

if TYPE_CHECKING:
    from running import Choices


# What the receiver did with a packet of a packet log: when it came, where it was placed, which answer spoke of it.
Line = dict[str, Any]
ANSWERS = ("SACK", "NACK", "ACKNOWLEDGE")


class PacketAnswers:
    """Looks packets up in the logs of a view's runs, one a lane; None where nothing is recorded."""

    def __init__(self, runs: Sequence[Path | None]) -> None:
        self._runs = runs

    def __call__(self, lane: int, packet: int) -> dict[str, Any]:
        """LookupError when there is no log, or when the log has no such packet."""
        run = self._runs[lane]
        log = None if run is None else run / PACKETS
        if log is None or not log.exists():
            raise LookupError("this run has no packet log: run with --world simulated --record-packets START..END")
        return answer(log, packet)


def answer(log: Path, packet: int) -> dict[str, Any]:
    """`{received, placed, answered}`, each None where the log does not tell.

    `received`: `{t_ns, node, bytes, trimmed}`. `placed`: `{va, payload}`, None for a packet that came trimmed.
    `answered`: the first answer that speaks of the PSN, as it left the receiver: `{t_ns, op, qpn, ev, psn, sacked,
    cause_psn, came_ns}`; `came_ns` is when the sender had it, None when it was lost or the log ends before.
    """
    way = list(lines(log, f'"packet":{packet},'))
    if not way:
        raise LookupError(f"the packet log has no packet {packet}")
    last = way[-1]
    if last["fate"] != "received":
        return {"received": None, "placed": None, "answered": None}
    whole = not last["trimmed"]
    placed = {"va": last["va"], "payload": last["payload"]} if whole and last["va"] is not None else None
    received = {key: last[key] for key in ("t_ns", "node", "bytes", "trimmed")}
    return {"received": received, "placed": placed, "answered": answered(log, last)}


def answered(log: Path, packet: Line) -> Line | None:
    """The first answer to a packet that was received."""
    answers = [
        line
        for line in lines(log, f'"dst":"{packet["src"]}"', f'"src":"{packet["dst"]}"')
        if line["op"] in ANSWERS and line["node"] == packet["dst"] and line["t_ns"] >= packet["t_ns"]
    ]
    # An answer names the QP that it goes to, not the ack that it comes from: an answer that this very packet has
    # caused tells which of the sender's QPs it belongs to.
    own = [answer["qpn"] for answer in answers if caused(answer, packet)]
    for ack in answers:
        if own and ack["qpn"] != own[0]:
            continue
        speaks = ack["psn"] == packet["psn"] if ack["op"] == "NACK" else acknowledges(ack, packet["psn"])
        if not speaks:
            continue
        way = [line for line in lines(log, f'"packet":{ack["packet"]},') if line["fate"] == "received"]
        told = {key: ack[key] for key in ("t_ns", "op", "qpn", "ev", "psn", "sacked", "cause_psn")}
        return {**told, "came_ns": way[0]["t_ns"] if way else None}
    return None


def caused(answer: Line, packet: Line) -> bool:
    return bool(answer["cause_psn"] == packet["psn"] and answer["echo_ev"] == packet["ev"])


def lines(log: Path, *words: str) -> Iterator[Line]:
    """Lines of the log that hold all these words; those between the first line and the last."""
    wanted = [word.encode() for word in words]
    with plain_file.open_plain(log) as file:
        for part in plain_file.lines(file, log):
            if part.endswith(b"\n") and all(word in part for word in wanted):
                line: Line = plain_file.parse_json(part)
                if "packet" in line:
                    yield line


HandOver = Callable[[Path], None]
"""Gives a file that root has written to the user who called sudo."""
NOT_YET = "the lab is still being built"
COUNTS_BYTES = 8 << 20  # of each of two files: what the switches of a lab that is up have counted
LOOK_S = 0.5
"""Switches are looked at every so many slices: twice a second of lab time."""


@dataclass(frozen=True, slots=True)
class Going:
    """One run that goes on, for a lane of the page. `options` are those that the page needs from the beginning."""

    plan: Plan
    options: Mapping[str, Any]
    directory: RunDirectory

    @classmethod
    def of(cls, choices: Choices, directory: RunDirectory) -> Going:
        """A run that has not begun yet."""
        options = {
            "scenario": directory.path.parent.name,
            "transport": choices.transport.name,
            "seed": choices.seed,
            "world": choices.world,
            "plan": choices.plan.name,
            "pace": choices.pace,
        }
        return cls(choices.running_plan, options, directory)


class RunView:
    """The page of a run, or of two that race in virtual time: from before a world is there until all are judged."""

    def __init__(
        self,
        runs: Sequence[Going],
        tell: Callable[[str], None],
        *,
        hand_over: HandOver,
        paused: bool = False,
        port: int = 0,
    ) -> None:
        """`paused`: runs in virtual time begin held. They are stepped by the interval of samples."""
        first = runs[0]
        self._runs = runs
        virtual = first.options["world"] == "simulated"
        self.pacers = [RunPacer(paused) for _ in runs] if virtual else []
        self.abreast = Abreast(len(runs))
        self._microscope = Microscope([run.plan for run in runs])
        words = f"live, {'in virtual time' if virtual else 'on real links'}"
        titles = [title(run.options) for run in runs]
        view = View(
            " against ".join(titles),
            words,
            "live",
            tuple(run.plan for run in runs),
            tuple(run.directory.path for run in runs),
            tuple(run.options for run in runs),
            tuple(titles),
            virtual,
        )
        file = first.directory.path / "played.py"
        self._handler = RequestHandler(
            [run.plan for run in runs],
            self._microscope,
            pausable=Pacers(self.pacers) if virtual else None,
            played=lambda: written(first.directory.path, file, hand_over),
            answer=PacketAnswers(view.runs),
            why_not=NOT_YET,
        )
        self.viewer = Viewer(view.document(), view.runs, self._handler, tell, port)

    def __enter__(self) -> RunView:
        self.viewer.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.viewer.__exit__(*raised)

    def opened(self, make_world: Callable[[], World], lane: int = 0) -> Callable[[], World]:
        """Makes the same world, which the page may break from then on."""

        def make() -> World:
            world = make_world()
            if not self.pacers:
                assert isinstance(world, EmulatedWorld)
                if world.lab.switch_control is not None:
                    self._microscope.lab = RealLab(world.lab)
                self._handler.injectors[lane] = LabInjector(world.lab)
                return Closing(world, partial(self._closed, lane))
            assert isinstance(world, SimulatedWorld)
            return Closing(self._paced(world, lane), partial(self._closed, lane))

        return make

    def _paced(self, world: SimulatedWorld, lane: int) -> PacedWorld:
        directory, pacer = self._runs[lane].directory, self.pacers[lane]
        journal = Journal(directory.journal("faults"), "lab", world.now_ns)
        self._handler.injectors[lane] = PacedInjector(world, pacer, journal)
        world.sample_packets()
        slice_ns = round(SAMPLE_S * min(float(run.options["pace"]) for run in self._runs) * 1e9)
        return PacedWorld(world, pacer, slice_ns, partial(self.abreast.arrive, lane))

    def _closed(self, lane: int) -> None:
        self.abreast.leave(lane)
        self._handler.why_not = OVER
        self._handler.injectors.pop(lane, None)
        self._microscope.lab = None


class ChangedCounters:
    """Journals what the switches of a lab that is up have counted, in `sample` lines; a quiet lab writes few.

    A change has a sample one look before it and one look after it: rates are those of one look, and end with the
    traffic.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._last: dict[str, _Look] = {}

    def look(self, switch: str, t_ns: int, ports: list[dict[str, Any]]) -> None:
        """Take the present counts of a switch's ports."""
        last = self._last.get(switch)
        changed = last is None or ports != last.ports
        if changed and last is not None and not last.written:
            self._write(switch, last)
        now = _Look(t_ns, ports, changed, written=changed or (last is not None and last.changed))
        if now.written:
            self._write(switch, now)
        self._last[switch] = now

    def _write(self, switch: str, look: _Look) -> None:
        self._journal.write("sample", t_ns=look.t_ns, node=switch, device=switch, ports=look.ports)


@dataclass(frozen=True, slots=True)
class _Look:
    t_ns: int
    ports: list[dict[str, Any]]
    changed: bool
    written: bool


class LabInjector:
    """A running lab's faults, one change at a time."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lock = threading.Lock()

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        with self._lock:
            return self._lab.inject(verb, target, value, seed)

    def undo(self, fault: Fault) -> None:
        with self._lock:
            self._lab.undo(fault)

    def faults(self) -> list[Fault]:
        return self._lab.faults()


def written(run: Path, file: Path, hand_over: HandOver) -> dict[str, Any]:
    """The actions by hand so far, as a scenario file."""
    events = Run.open(run)
    played(events, file)  # ValueError before there is a file, while nothing was done by hand
    base = file
    for number in count(2):
        try:
            made = file.open("x", encoding="utf-8")  # never over a file that was edited, nor through a link
            break
        except FileExistsError:
            file = base.with_name(f"{base.stem}-{number}{base.suffix}")
    with made:
        shown = os.path.relpath(file)
        text = played(events, Path(shown))
        made.write(text)
    hand_over(file)
    return {"file": shown, "text": text, "command": command("run", Path(shown))}


class LabPage:
    """The page of a lab that is up. Faults and switches' counters are journalled here, agents journal themselves."""

    def __init__(
        self, lab: Lab, folder: Path, file: Path, tell: Callable[[str], None], hand_over: HandOver, port: int = 0
    ) -> None:
        """`folder` becomes the run's folder of what is seen from now on; a played scenario goes to `file`."""
        self._lab = lab
        (folder / "journal").mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # temporary folders are closed to the user who serves
        agents = lab.site.journals or lab.root / "agents"
        agents.mkdir(exist_ok=True)
        self._journal = Journal(folder / "journal" / "lab.jsonl", "lab")
        # Faults stay for the played scenario; counters of weeks need not.
        self._counts = Journal(folder / "journal" / "switches.jsonl", "lab", bytes_max=COUNTS_BYTES, lossy=True)
        name = f"plan {lab.plan.name}, running"
        self.view = View(name, "live, on real links", "live", (lab.plan,), (folder,), ({},), (name,))
        seeing = RealLab(lab) if lab.switch_control is not None else None
        self._journal.write_process("view")
        self._journal.write("options", plan=lab.plan.name, world="emulated")
        self._handler = RequestHandler(
            [lab.plan],
            Microscope([lab.plan], seeing),
            injector=LabInjector(lab),
            played=lambda: written(folder, file, hand_over),
        )
        self.viewer = Viewer(self.view.document(), self.view.runs, self._handler, tell, port, also=agents)
        self._ending = threading.Event()
        self._seen: list[Fault] = []
        self._counters_seen = ChangedCounters(self._counts)
        self._begin_ns = time.monotonic_ns()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._open = ExitStack()

    def __enter__(self) -> LabPage:
        self._open.enter_context(self.viewer)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._open.close()
        self._journal.close()
        self._counts.close()

    def wait(self) -> None:
        """Returns when the lab has been taken down."""
        while self._lab.is_up():
            self._ending.wait(LOOK_S)

    def _watch(self) -> None:
        while not self._ending.wait(LOOK_S) and self._lab.is_up():
            try:
                self._beat()
                self._faults()
                self._counters()
            except (ControlError, LabError, OSError):
                continue  # the lab is being taken down, or a switch process is busy: the next look tells

    def _beat(self) -> None:
        """Time goes on, also where nothing is written: the page then sees which samples are old."""
        wall_ns = time.monotonic_ns() - self._begin_ns
        self._counts.write("cpu", process_ns=time.process_time_ns(), wall_ns=wall_ns)

    def _faults(self) -> None:
        now = self._lab.faults()
        ended = [fault.line("end") for fault in self._seen if fault not in now]
        for line in ended + [fault.line("begin") for fault in now if fault not in self._seen]:
            self._journal.write("fault", **line)
        self._seen = now

    def _counters(self) -> None:
        counted, t_ns = RealLab(self._lab).managers(), time.monotonic_ns()
        for switch, ports in counted.items():
            rows = [{"port": port, **counters} for port, counters in ports.items()]
            self._counters_seen.look(switch, t_ns, rows)
