"""Lab 10: read the paper. A figure is reproduced, one assumption is changed, and the difference is defended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from common.seeds import Purpose, derive
from course.box.box import BoxError
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome, judged
from judging import Run
from paper import measuring, readings
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured
from paper.pair import pair
from running import Choices, RunSpec, prepare
from running.runner import make_run
from scenarios import TimedFault
from topo import Plan
from topo.fault import FaultError
from topo.plan import Packets

# Runs of lab 10: the pair of figure 9a on the paper's cluster B, with a student's timeline and payload.
STEP_ROUND_TRIPS, LEAD_ROUND_TRIPS = 8, 24
SETTLE = 0.25
"""The first share of a step, in which windows settle."""
FAULTS_MAX = 32
Fault = tuple[float, str, str, float | None]
"""Step, verb, target, and the step in which it ends."""


def plan_of(payload: int) -> Plan:
    """Cluster B with so many bytes of payload in a packet."""
    return replace(B, packets=Packets(pmtu_bytes=payload))


def timeline(answer: object, steps: int, name: str) -> list[Fault]:
    """A student's timeline; a fault that lasts longer than the run has no end. BoxError says what an entry must be."""
    if not isinstance(answer, list) or len(answer) > FAULTS_MAX:
        raise BoxError(f"{name}: timeline must return a list of at most {FAULTS_MAX} faults (got {answer!r:.80})")
    faults: list[Fault] = []
    for entry in answer:
        at, verb, target, until = (*entry, None)[:4] if isinstance(entry, list) and 2 < len(entry) < 5 else (None,) * 4
        begins = type(at) in (int, float) and 0 <= at < steps
        ends = until is None or (begins and type(until) in (int, float) and until > at)
        if not begins or not isinstance(verb, str) or not isinstance(target, str) or not ends:
            raise BoxError(
                f"{name}: a fault must be (step, verb, target) or (step, verb, target, until) with a step from 0 to"
                f" {steps - 1}, such as (1, 'port-down', 'h0.p0') (got {entry!r:.80})"
            )
        faults.append((float(at), verb, target, None if until is None or until >= steps else float(until)))
    return faults


def rates(work: StudentWork, name: str, payload: int, faults: Sequence[Fault], steps: int) -> list[float]:
    """Goodput of both directions together in each step, Gb/s. BoxError for faults that cannot be."""
    plan = plan_of(payload)
    clock = replace(Clock.round_trips(plan, STEP_ROUND_TRIPS), lead=LEAD_ROUND_TRIPS)
    timed: list[TimedFault] = []
    for at, verb, target, until in faults:
        if at < steps:
            timed.append(clock.fault(at, verb, target, until=None if until is None or until >= steps else until))
    part = pair(clock, steps, timed, lambda run: Measured({}), name=name)
    transport = replace(part.transport, payload="counted")
    choices = Choices(transport, plan, 1 + work.seed % 1000, world="simulated", short=True)
    spec = RunSpec(part.scenario("9a"), choices)
    try:
        prepare(spec)
    except (FaultError, ValueError) as error:
        raise BoxError(f"{work.path.name}: the timeline cannot be carried out: {error}") from None
    run = Run.open(make_run(spec, work.folder / "runs"))
    return [measuring.rate(run, clock, step + SETTLE, step + 1) for step in range(steps)]


PAYLOAD, LINKS, STEPS, PORT_GBPS = 4096, 8, 7, 100
STEPS_CHANGED = 4  # of the runs with smaller packets, which take longer
PAYLOADS = (1024, 1152, 1280, 1408)
READ, REPRODUCED, PREDICTED, WIRE, LINE, LOSS = 3.0, 10.0, 5.0, 3.0, 94.0, 2.0
WORDS, CHARACTERS_MAX = (60, 250), 10_000
NUMBER = r"(?<!\d)\d{1,6}(?!\d)(?:\.\d+)?"
HEADERS = (138, 162)
"""Bytes before and behind the payload of a write: of the frame, and with preamble, checksum and gap of the wire."""
LOOK = ("./lab reproduce 9a --recorded", "./lab course page figure")


def changed_payload(seed: int) -> int:
    """The payload that a student changes the packets to."""
    return Random(derive(seed, Purpose.LESSON, "figure payload")).choice(PAYLOADS)


def paper_gbps() -> dict[int, float]:
    """The paper's rates by links that are up."""
    read = readings.of("9a")
    return {LINKS - down: read[f"{LINKS - down} links"].value for down in range(STEPS)}


def watched(work: StudentWork, name: str) -> Any:
    """A name of the student's module."""
    with work.box() as box:
        _, attributes = box.tell([], of=0, watch=[name])
    return attributes.get(name)


def reads(work: StudentWork) -> TestOutcome:
    given = watched(work, "READINGS")
    if not isinstance(given, dict):
        raise BoxError(f"{work.path.name}: READINGS must be a dictionary of links and Gb/s (got {given!r:.80})")
    off = {
        links: abs(number(given.get(str(links), given.get(links))) / value - 1) * 100
        for links, value in paper_gbps().items()
    }
    worst = max(off, key=lambda links: off[links])
    right = sum(percent <= READ for percent in off.values())
    told = f"{right} of {len(off)} readings are within {READ:g} % of the curve"
    advice = f"with {worst} links it is off by {off[worst]:.0f} %: the axis is payload of both directions, in Gb/s"
    return judged("READINGS has the paper's rates", told, (Gate("readings", right, len(off)),), LOOK, advice)


def number(value: object) -> float:
    """A number, or 0 for anything else."""
    return float(value) if isinstance(value, int | float) and value == value and abs(value) < 1e12 else 0.0


def listed(values: list[float]) -> str:
    """Rates in words."""
    return ", ".join(f"{rate:.0f}" for rate in values)


def own_timeline(work: StudentWork) -> list[Fault]:
    def ask() -> list[Fault]:
        with work.box() as box:
            return timeline(box.call("timeline"), STEPS, work.path.name)

    return work.once("timeline", ask)


def measured(work: StudentWork, payload: int) -> list[float]:
    """The rates of the run with the student's timeline and this payload, made once per check."""
    steps = STEPS if payload == PAYLOAD else STEPS_CHANGED
    return work.once(
        f"payload {payload}", lambda: rates(work, f"payload-{payload}", payload, own_timeline(work), steps)
    )


def reproduces(work: StudentWork) -> TestOutcome:
    ours = measured(work, PAYLOAD)
    paper = list(paper_gbps().values())
    off = [abs(rate / value - 1) * 100 for rate, value in zip(ours, paper, strict=True)]
    worst = off.index(max(off))
    gate = Gate("farthest step", off[worst], REPRODUCED, " %", at_most=True)
    told = f"steps carry {listed(ours)} Gb/s, the paper's {listed(paper)}"
    side = "above" if ours[worst] > paper[worst] else "below"
    advice = (
        f"in step {worst}, {worst} links of h0 must be down, and the rate is {side} the paper's."
        " A port of the NIC that goes down stays down; count ports from 0"
    )
    return judged("a run with your timeline reproduces the figure", told, (gate,), LOOK, advice)


def predictions(work: StudentWork, payload: int) -> list[float]:
    """The student's prediction for each step."""
    with work.box() as box:
        return [
            number(box.call("predicted", LINKS - down, payload))
            for down in range(STEPS if payload == PAYLOAD else STEPS_CHANGED)
        ]


def predicts(work: StudentWork, payload: int, sentence: str) -> TestOutcome:
    """Whether predictions for a payload are what a run measures."""
    ours, said = measured(work, payload), predictions(work, payload)
    off = [abs(guess / value - 1) * 100 if value else 100.0 for guess, value in zip(said, ours, strict=True)]
    worst = off.index(max(off))
    gate = Gate("farthest prediction", off[worst], PREDICTED, " %", at_most=True)
    told = f"payload {payload}: predicted {said[worst]:.0f} Gb/s with {LINKS - worst} links, measured {ours[worst]:.0f}"
    advice = (
        "count what a cable carries for each packet: payload, headers, preamble, checksum and gap; and two directions"
        if said[worst] > ours[worst]
        else "the prediction is too low: which bytes were counted twice, or which direction was left out?"
    )
    return judged(sentence, told, (gate,), LOOK, advice)


def predicts_paper(work: StudentWork) -> TestOutcome:
    return predicts(work, PAYLOAD, "predicted says what the figure shows, from bytes and links")


def predicts_change(work: StudentWork) -> TestOutcome:
    return predicts(work, changed_payload(work.seed), "predicted says what changes with the payload")


def predicts_another(work: StudentWork) -> TestOutcome:
    other = 2048 + 64 * work.rng("another payload").randrange(8)
    return predicts(work, other, "predicted holds for a payload that was not announced")


def wire(work: StudentWork) -> TestOutcome:
    """The explanation says where there is no difference: on the cable."""
    small, rates = changed_payload(work.seed), {}
    with work.box() as box:
        for payload in (PAYLOAD, small):
            rates[payload] = number(box.call("wire", round(measured(work, payload)[0], 3), payload))
    full = 2 * LINKS * PORT_GBPS
    low, high = sorted(rates.values())
    apart = 100 * (high / low - 1) if low > 0 else 100.0
    share = 100 * low / full
    gates = (
        Gate("the two wires differ by", apart, WIRE, " %", at_most=True),
        Gate("of the links' rate", share, LINE, " %"),
        Gate("of the links' rate at most", 100 * high / full, 101.0, " %", at_most=True),
    )
    told = f"cables carried {rates[PAYLOAD]:.0f} Gb/s with {PAYLOAD} bytes of payload, {rates[small]:.0f} with {small}"
    advice = "if headers explain the difference, cables carry the same in both runs, nearly the rate of all links"
    return judged("wire shows that the cables carry the same in both runs", told, gates, LOOK, advice)


def defends(work: StudentWork) -> TestOutcome:
    text = watched(work, "DEFENCE")
    if not isinstance(text, str) or len(text) > CHARACTERS_MAX:
        got = len(text) if isinstance(text, str) else f"{text!r:.80}"
        raise BoxError(f"{work.path.name}: DEFENCE must be a text of at most {CHARACTERS_MAX} characters (got {got})")
    words = len(text.split())
    base, small = measured(work, PAYLOAD)[0], measured(work, changed_payload(work.seed))[0]
    if not base:
        raise BoxError(
            f"{work.path.name}: timeline must leave a link of h0 up in step 0 (the run carries nothing there)"
        )
    loss = 100 * (1 - small / base)
    numbers = [float(digits) for digits in re.findall(NUMBER, text)]
    percent = [float(digits) for digits in re.findall(rf"({NUMBER})\s*%", text)]
    names_loss = any(abs(percentage - loss) <= LOSS for percentage in percent)
    names_bytes = any(written in HEADERS for written in numbers)
    gates = (
        Gate("words", words, WORDS[0]),
        Gate("words at most", words, WORDS[1], at_most=True),
        Gate("names the loss in %", names_loss, 1),
        Gate("names the bytes of headers", names_bytes, 1),
    )
    missing = [name for name, there in (("the loss", names_loss), ("the headers", names_bytes)) if not there]
    told = f"{words} words, {' and '.join(missing) or 'nothing'} left out"
    advice = (
        f"with all links the smaller payload costs {loss:.1f} %; say how many bytes each packet has beside it, and why"
    )
    return judged("DEFENCE says how large the difference is, and why (a teacher reads it)", told, gates, LOOK, advice)


def fill(text: str, seed: int) -> str:
    """The file with the student's own payload."""
    return text.replace("@PAYLOAD@", str(changed_payload(seed)))


LAB = Exercise(
    name="figure",
    title="Read the paper: figure, assumption, defence",
    minutes=180,
    tests=(
        Test("read", "the paper's numbers", 1, reads),
        Test("reproduce", "the figure is reproduced", 3, reproduces),
        Test("predict", "the figure is predicted", 2, predicts_paper),
        Test("change", "the change is predicted", 3, predicts_change),
        Test("another", "another change as well", 1, predicts_another),
        Test("wire", "what does not change", 2, wire),
        Test("defend", "the difference is defended", 2, defends),
    ),
    fill=fill,
    solve=fill,
    answers=True,
)
