"""The contest: every answer under every failure on the same seeds, and what the seeds make known."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from answers.answer import Answer
from answers.failures import file_of
from answers.measuring import MEASURES, PREDICTED
from common import plain_file
from running import Choices, RunSpec
from running.transport_choice import transport
from scenarios import library
from studies.contest import ranks
from studies.sweeping import PairedDifference, Sweep, Variant, VariantStatement, difference, statements
from topo import load_plan

REFERENCE = "mrc"
HEAD = ["answer", "mean (95 % interval)", f"difference to {REFERENCE}", "rank (possible ranks)", "predicted", "is"]


def chosen(options: Mapping[str, Any]) -> RunSpec:
    """The run of these options of `./lab run`."""
    scenario = library.find(options["scenario"])
    choice = replace(transport(options["transport"], scenario.settings), payload="counted")
    plan = options.get("plan", scenario.plan)
    given = {"seed": options["seed"], "world": "simulated", "source": options["scenario"], "plan_source": plan}
    return RunSpec(scenario, Choices(choice, load_plan(plan), time_factor=options["time"], **given))


def variants(
    answers: Sequence[Answer], failures: Sequence[str], plan: str, time: float = 1.0
) -> list[tuple[str, Answer, Variant]]:
    """Each pair of a failure and an answer that goes together, with its run but for the seed.

    With one plane and so one port, a host that loses a port is gone: such answers sit this failure out.
    """
    shared = (("world", "simulated"), ("time", time), ("payload", "counted"))
    return [
        (failure, answer, Variant(str(file_of(failure)), answer.transport, plan, others=shared))
        for failure in failures
        for answer in answers
        if not (answer.single_plane and failure == "lost-nic-port")
    ]


@cache
def predictions() -> Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]:
    """By answer, failure and measure: the least, the expected and the most."""
    return tomllib.loads(plain_file.read_named(Path(__file__).parent / "predictions.toml"))


def predicted(answer: Answer, failure: str, measure: str) -> Sequence[float] | None:
    """The prediction for a measure, in its unit; None where there is none."""
    own = predictions().get(answer.predicted, {}).get(failure, {})
    return own.get(PREDICTED.get(measure, ""))


@dataclass(frozen=True, slots=True)
class Line:
    """One answer's number of one measure under one failure. `place`, `low` and `high` are ranks."""

    failure: str
    measure: str
    answer: str
    runs: int
    mean: float
    interval: PairedDifference | None
    gap: PairedDifference | None
    rank: str
    low_rank: int
    predicted: Sequence[float] | None

    @property
    def meets(self) -> str:
        """Whether the mean is in the predicted range; "" without a prediction."""
        if self.predicted is None:
            return ""
        return "as predicted" if self.predicted[0] <= self.mean <= self.predicted[2] else "not as predicted"


@dataclass(frozen=True, slots=True)
class Results:
    """The statements of all runs, and the lines of every table."""

    answers: Sequence[Answer]
    failures: Sequence[str]
    stated: Mapping[tuple[str, str], VariantStatement]

    def lines(self, failure: str, measure: str) -> Iterator[Line]:
        """A line per answer that has the measure. Ranks only where all answers' seeds allow one."""
        scale, effect = MEASURES[measure].scale, MEASURES[measure].effect
        values = {
            answer.name: own
            for answer in self.answers
            if (failure, answer.name) in self.stated and (own := self.stated[failure, answer.name].values(measure))
        }
        placed = ranks(values, MEASURES[measure].better, effect)
        for answer in self.answers:
            own = values.get(answer.name, {})
            if not own:
                continue
            scaled = {seed: scale * value for seed, value in own.items()}
            base = {seed: scale * value for seed, value in values.get(REFERENCE, {}).items()}
            rank = placed.get(answer.name)
            yield Line(
                failure,
                measure,
                answer.name,
                len(own),
                fmean(scaled.values()),
                difference(dict.fromkeys(scaled, 0.0), scaled),
                None if answer.name == REFERENCE else difference(base, scaled),
                "–" if rank is None else rank.describe(),
                0 if rank is None else rank.low,
                predicted(answer, failure, measure),
            )

    def failed(self, failure: str, answer: str) -> int:
        """Runs with a wrong byte, a queue pair that gave up, or an error."""
        stated = self.stated.get((failure, answer))
        return 0 if stated is None else sum(not row.passed for row in stated.rows)

    def best(self, failure: str, measure: str) -> list[str]:
        """The answers that no other beats clearly."""
        return [line.answer for line in self.lines(failure, measure) if line.low_rank == 1]


def results_of(sweep: Sweep, pairs: Sequence[tuple[str, Answer, Variant]]) -> Results:
    """The results of a sweep over `variants`, in their order."""
    stated = {(failure, answer.name): each for (failure, answer, _), each in zip(pairs, statements(sweep), strict=True)}
    answers = list({answer.name: answer for _, answer, _ in pairs}.values())
    return Results(answers, list(dict.fromkeys(failure for failure, _, _ in pairs)), stated)


def cells(line: Line) -> list[str]:
    """A line for people, under `HEAD`."""
    gap, interval = line.gap, line.interval
    around = ""
    if interval is not None and interval.low is not None and interval.high is not None:
        around = f" ({interval.low:.2f} to {interval.high:.2f})"
    apart = "–" if gap is None else f"{gap.mean:+.2f}"
    if gap is not None and gap.low is not None and gap.high is not None:
        apart += f" ({gap.low:+.2f} to {gap.high:+.2f})"
    told = "–" if line.predicted is None else "{1:g} ({0:g} to {2:g})".format(*line.predicted)
    return [line.answer, f"{line.mean:.2f}{around}", apart, line.rank, told, line.meets]
