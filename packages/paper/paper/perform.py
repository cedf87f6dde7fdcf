"""Making one run of a figure, in whatever process: run, measure, keep a row, leave no file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from common import user_code
from judging import Run
from paper import catalogue
from paper.figure import Figure, Part
from running import Choices, RunSpec, identity
from running.document import spec_of, written
from running.runner import make_run
from studies.sweeping import Row, Task, VersionError
from studies.sweeping.perform import kept

DATA = frozenset({"breaking", "cluster", "figure", "parameters", "profile", "readings"})
"""Modules of this folder that measure nothing: their values are in a run's JSON, or are words."""
MADE = "made"
"""The verdict of every row: nothing is judged here."""


@dataclass(frozen=True, slots=True)
class FigureTask(Task):
    """A run of a figure, which the figure's part measures."""

    figure: str
    part: str
    short: bool


@cache
def parts_of(name: str, short: bool) -> Mapping[str, Part]:
    """The runs of a figure by name; to make all of them takes a while where there are many."""
    return {part.name: part for part in catalogue.find(name).parts(short)}


def spec(figure: str, part: Part, short: bool) -> RunSpec:
    """The run of a part."""
    transport = replace(part.transport, payload="counted")
    return RunSpec(part.scenario(figure), Choices(transport, part.plan, part.seed, world="simulated", short=short))


def hashes(run: RunSpec, figure: str) -> dict[str, str]:
    """The digests that decide a row, by name: of the run's key, its traffic, and the code that measures."""
    file = catalogue.file_of(figure)
    return {
        "run": identity.key(run.options()),
        "traffic": identity.digest(json.dumps(written(run)["scenario"]).encode()),
        "figure": identity.file_digest(file),
        "measuring": identity.code_digest(("judging", *measuring(file))),
    }


@cache
def measuring(file: Path) -> tuple[str, ...]:
    """The modules of this room that a figure's file imports, and those that they import, without DATA.

    They are paths as they are imported. The code that folds a run to numbers is in one of them, or in the figure's own.
    """
    data = [catalogue.FOLDER / f"{name}.py" for name in DATA]
    imports = user_code.imported(file, data, identity.import_roots())
    own = [path for path in imports if path.is_relative_to(catalogue.FOLDER) and path.name != "__init__.py"]
    return tuple(sorted(str(identity.import_name(path)) for path in own))


def task(figure: Figure, part: Part, short: bool) -> FigureTask:
    """The task of a run. Its key changes with the code, the parameters, the cluster and the figure's own file."""
    run = spec(figure.name, part, short)
    digests = hashes(run, figure.name)
    key = identity.digest(json.dumps([figure.name, part.name, short, digests]).encode())
    title = f"figure {figure.name}, {part.name}"
    return FigureTask(key, written(run), title, digests, figure.name, part.name, short)


def perform(scratch: str, task: FigureTask) -> Row:
    """One run and its row. VersionError when this process has other code than who asked; the row has other errors."""

    def measured(root: Path) -> Row:
        run = spec_of(task.run)
        if hashes(run, task.figure) != task.hashes:
            raise VersionError(f"the code was changed while figure {task.figure} was made: begin again")
        measurement = parts_of(task.figure, task.short)[task.part].measure(Run.open(make_run(run, root)))
        curves = {name: [list(point) for point in points] for name, points in measurement.curves.items()}
        row = Row(task.key, task.seed, MADE, metrics=dict(measurement.numbers), curves=curves)
        return Row.from_text(row.to_text())  # as a store has it: comparisons of numpy's numbers are no bool

    return kept(task, scratch, measured)
