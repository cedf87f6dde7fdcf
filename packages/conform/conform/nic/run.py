"""A run of the rules against a NIC: each test on a queue pair that is reset, with its capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from common.seeds import Purpose, derive
from conform import capture, result
from conform.nic import hunting
from conform.nic.bench import Bench
from conform.nic.control import Channel, ControlError
from conform.nic.device_file import DeviceFile
from conform.nic.link import Link
from conform.nic.session import FloodError, Replay, ReplayError, Session
from conform.result import FAIL, INTERMITTENT, PASS, UNREACHED, Broken, NotReachable, Result, Verdict
from conform.rule import Rule

ROLES = ("responder", "requester", "wire", "fabric", "hunt")
SLOW_MAX = 4
"""How often a test is made again for which the machine was too slow."""
TRIES = 8
"""How often a test is made that failed once and did not at once fail again."""
SILENT_MAX, DEAD_MAX = 3, 20
"""Rules in a row without any frame of the device, after which the rest is not tried: of one that has sent nothing at
all, and of one that has."""


@dataclass(slots=True)
class Tester:
    """A device, and how to reach it."""

    about: DeviceFile
    link: Link
    control: Channel
    seed: int = 0
    silent: str = ""
    """Why the device is not tried any further."""
    quiet_rules: int = 0
    spoke: bool = False
    """Whether a frame of the device has come."""

    def greet(self) -> None:
        """Raises `ControlError` if the device's control channel does not answer; finds out whether EV probes are."""
        self.control.ask("hello version=1")
        if not self.about.ev_probe:
            return
        session = Session(self.link, self.control)
        try:
            Bench(self.about, session, Random(derive(0, Purpose.DEVICE))).begin().probe_ev()
        except (Broken, NotReachable):
            self.about = replace(self.about, ev_probe=False)

    def run(self, rule: Rule) -> tuple[Result, dict[str, bytes]]:
        """The result of a rule and its captures, by file name."""
        if self.silent:
            return Result(rule.id, UNREACHED, self.silent), {}
        results, captures = [], {}
        for number, test in enumerate(rule.functions()):
            found, bench = self._made(rule, number, test)
            results.append(found)
            captures[file_name(rule, number)] = capture.packed(bench.session.events, names(self.about))  # type: ignore[union-attr]
            self._watch(bench, found)
        return result.joined(results), captures

    def _made(self, rule: Rule, number: int, test: Callable[[Bench], str | None]) -> tuple[Result, Bench]:
        """A test's result, and the bench that shows it.

        On a machine that pauses, silence is no proof: a failure must repeat. One that does not repeat at once has
        `TRIES` tries in all, and a second one among them is the device's: it fails now and then.
        """
        failed: list[tuple[Result, Bench]] = []
        held_once = slow = 0
        while True:
            bench = Bench(self.about, Session(self.link, self.control), chance(self.seed, rule, number))
            found = held(rule, bench, test)
            if slow < SLOW_MAX and found.text.startswith("too slow"):
                slow += 1
                continue
            if found.outcome == FAIL:
                failed.append((found, bench))
            else:
                held_once += 1
            tries = len(failed) + held_once
            if not failed or (not held_once and tries == 2) or tries == TRIES:
                break
        if not failed or not held_once:
            return found, bench
        why, shows = failed[-1]
        told = f"failed in {len(failed)} of {tries} tries, seed {self.seed}: {why.text}"
        if len(failed) > 1:
            return Result(rule.id, INTERMITTENT, told, seconds=why.seconds), shows
        found.text = f"{found.text} ({told})".strip()
        return found, bench

    def _watch(self, bench: Bench, found: Result) -> None:
        """Give up on a device that says nothing."""
        sent = any(event.inward and event.place != capture.TEXT for event in bench.session.events)  # type: ignore[union-attr]
        if bench.seen:
            self.quiet_rules, self.spoke = 0, True
        elif sent and found.outcome == FAIL:
            self.quiet_rules += 1
        if "control channel" in found.text:
            self.silent = found.text
        elif self.spoke and self.quiet_rules >= DEAD_MAX:
            self.silent = f"no frame of the device has come for {DEAD_MAX} rules, and some had before"
        elif not self.spoke and self.quiet_rules >= SILENT_MAX:
            self.silent = "no frame of the device has come: check the interface, its MAC addresses and the device file"


@dataclass(slots=True)
class Hunt:
    """Random schedules until the time is up; for each rule, the shortest one that breaks it."""

    tester: Tester
    rules: Sequence[Rule]
    schedules: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By rule: the number of the trial that broke it, and its schedule made short."""
    results: dict[str, tuple[Result, dict[str, bytes]]] = field(default_factory=dict)
    trials: int = 0

    def go(self, seconds: float) -> list[tuple[Result, dict[str, bytes]]]:
        """The results in the order of the rules."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and len(self.results) < len(self.rules) and not self.tester.silent:
            self.trials += 1
            schedule = hunting.drawn(Random(derive(self.tester.seed, Purpose.DEVICE, self.trials)))
            for rule in self._breaks(schedule):
                self._shrink(rule, schedule)
        for rule in self.rules:
            self.results.setdefault(rule.id, (Result(rule.id, PASS, f"{self.trials} schedules"), {}))
            if self.tester.silent:
                self.results[rule.id] = Result(rule.id, UNREACHED, self.tester.silent), {}
        return [self.results[rule.id] for rule in self.rules]

    def _breaks(self, schedule: hunting.Schedule) -> list[Rule]:
        """The rules, of those not yet broken, that a schedule breaks."""
        kept = [rule for rule in self.rules if rule.id not in self.results]
        try:
            trial = hunting.play(self._bench(), schedule)
        except ControlError as error:
            self.tester.silent = f"control channel: {error}"
            return []
        except (Verdict, FloodError) as said:
            self.results |= {rule.id: (Result(rule.id, UNREACHED, f"no trial: {said}"), {}) for rule in kept}
            return []
        return [rule for rule in kept if hunting.broken(rule.functions()[0], trial)]

    def _bench(self) -> Bench:
        chance = Random(derive(self.tester.seed, Purpose.DEVICE, f"hunt {self.trials}"))
        return Bench(self.tester.about, Session(self.tester.link, self.tester.control), chance)

    def _shrink(self, rule: Rule, schedule: hunting.Schedule) -> None:
        best: list[tuple[str, bytes]] = []

        def breaks(one: hunting.Schedule) -> bool:
            bench = self._bench()
            try:
                why = hunting.broken(rule.functions()[0], hunting.play(bench, one))
            except (Verdict, FloodError, ControlError):
                return False
            if why:
                assert isinstance(bench.session, Session)
                best.append((why, capture.packed(bench.session.events, names(self.tester.about))))
            return bool(why)

        if not any(breaks(schedule) for _ in range(TRIES)):
            told = f"broken in trial {self.trials}, and not in {TRIES} tries of its schedule, seed {self.tester.seed}"
            self.results[rule.id] = Result(rule.id, INTERMITTENT, told), {}
            return
        short = hunting.shrunk(schedule, breaks)
        self.schedules[rule.id] = self.trials, short.text()
        why, data = best[-1]
        said = f"{why} (trial {self.trials}, {len(schedule)} steps made {len(short)})"
        self.results[rule.id] = Result(rule.id, FAIL, said), {file_name(rule, 0): data}


def hunted_again(rule: Rule, about: DeviceFile, seed: int, number: int, schedule: str, data: bytes) -> Result:
    """The result of a hunt's rule from the capture of its shortest schedule."""
    bench = Bench(about, Replay(capture.unpacked(data)), Random(derive(seed, Purpose.DEVICE, f"hunt {number}")))
    why = hunting.broken(rule.functions()[0], hunting.play(bench, hunting.read(schedule)))
    return Result(rule.id, FAIL if why else PASS, why)


def names(about: DeviceFile) -> list[str]:
    """The interfaces of a capture."""
    return [f"port{n + 1}" for n in range(about.ports)]


def chance(seed: int, rule: Rule, number: int) -> Random:
    return Random(derive(seed, Purpose.DEVICE, f"{rule.id} {number}"))


def file_name(rule: Rule, number: int) -> str:
    return f"{rule.id}.pcapng" if not number else f"{rule.id}-{number}.pcapng"


def held(rule: Rule, bench: Bench, test: Callable[[Bench], str | None]) -> Result:
    """One test, on a device that may do anything."""

    def tried(subject: Bench) -> str | None:
        try:
            return test(subject)
        except ControlError as error:
            raise NotReachable(f"control channel: {error}") from None
        except FloodError as error:
            raise Broken(str(error)) from None
        except (ReplayError, Verdict):
            raise
        except Exception as error:  # a defect of a test must not end the run
            raise NotReachable(f"a defect of the test: {error!r}") from error

    return result.judge(rule, bench, tried)


def again(rule: Rule, about: DeviceFile, seed: int, captures: Sequence[bytes]) -> Result:
    """The result of a rule from its captures. Raises `ReplayError` where they are not of this rule."""
    results = []
    for number, (test, data) in enumerate(zip(rule.functions(), captures, strict=True)):
        bench = Bench(about, Replay(capture.unpacked(data)), chance(seed, rule, number))
        results.append(held(rule, bench, test))
    return result.joined(results)
