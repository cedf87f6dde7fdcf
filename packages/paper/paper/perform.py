"""Making one run of a figure, in whatever process: run, measure, keep a row, leave no file."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from common import user_code
from judging.run import Run
from paper import catalogue
from paper.figure import Figure, Part
from running import identity
from running.choices import Choices
from running.spec import RunSpec
from studies.sweeping.perform import kept, made
from studies.sweeping.row import Row
from studies.sweeping.task import Choose, Task, VersionError

SHORT = "--short"
DATA = frozenset({"breaking", "cluster", "explanations", "figure", "parameters", "placement", "profile", "readings"})
"""Modules of this folder that measure nothing: their values are in a run's key and traffic, or are words."""
ASIDE = ("FIGURE", "SIZES")
"""What of a figure's file decides no single run: comparisons and words, and which sizes there are runs of."""
MADE = "made"
"""What the verdict of a row says: nothing is judged here."""


@cache
def parts_of(name: str, short: bool) -> Mapping[str, Part]:
    """The runs of a figure by name; to make all of them takes a while where there are many."""
    return {part.name: part for part in catalogue.find(name).parts(short)}


def part_of(words: Sequence[str]) -> tuple[Figure, Part]:
    """The figure and its run that a task's words name: FIGURE PART [--short]."""
    figure = catalogue.find(words[0])
    part = parts_of(figure.name, SHORT in words).get(words[1])
    if part is None:
        raise catalogue.FigureError(f"figure {words[0]} has no run {words[1]!r}")
    return figure, part


def choose(words: Sequence[str]) -> RunSpec:
    """The run that a task's words name."""
    figure, part = part_of(words)
    transport = replace(part.transport, payload="counted")
    choices = Choices(transport, part.plan, part.seed, world="simulated", short=SHORT in words)
    return RunSpec(part.scenario(figure.name), choices)


def hashes(words: Sequence[str]) -> dict[str, str]:
    """What decides a row, by name: the run's key with all that is in it, its traffic, and the code that measures."""
    file = catalogue.file_of(words[0])
    part = part_of(words)[1]
    traffic = repr((part.workloads, part.phases, part.faults, part.sample_s, part.sample_paths, part.sample_switches))
    return {
        "run": identity.key(choose(words).options()),
        "traffic": identity.digest(traffic.encode()),
        "figure": identity.digest(deciding(file.read_text()).encode()),
        "measuring": identity.code_digest(("judging", *measuring(file))),
    }


@cache
def measuring(file: Path) -> tuple[str, ...]:
    """The modules of this room that a figure's file imports, and those that they import, without DATA.

    They are paths as they are imported. The code that folds a run to numbers is in one of them, or in the figure's own.
    """
    data = [catalogue.FOLDER / f"{name}.py" for name in DATA]
    found = user_code.imported(file, data, identity.import_roots())
    own = [path for path in found if path.is_relative_to(catalogue.FOLDER) and path.name != "__init__.py"]
    return tuple(sorted(str(identity.import_name(path)) for path in own))


@cache
def deciding(source: str) -> str:
    """What of a figure's file decides a run: everything but comments and the names in ASIDE."""
    tree = ast.parse(source)
    tree.body = [one for one in tree.body if not (isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) in ASIDE)]
    return ast.dump(tree)


def task(figure: Figure, part: Part, short: bool) -> Task:
    """The task of a run. Its key changes with the code, the parameters, the cluster and the figure's own file."""
    words = (figure.name, part.name, *([SHORT] if short else []))
    found = hashes(words)
    return Task(identity.digest(json.dumps([words, found]).encode()), words, part.seed, found)


def perform(choose: Choose, scratch: str, task: Task) -> Row:
    """One run and its row. VersionError when this process has other code than who asked; the row has other errors."""

    def measured(root: Path) -> Row:
        if hashes(task.words) != task.hashes:
            raise VersionError(f"the code was changed while figure {task.words[0]} was made: begin again")
        folder = made(choose(task.words), root)
        found = part_of(task.words)[1].measure(Run.open(folder))
        curves = {name: [list(point) for point in points] for name, points in found.curves.items()}
        row = Row(task.key, task.seed, MADE, metrics=dict(found.numbers), curves=curves)
        return Row.from_text(row.to_text())  # as a store has it: comparisons of numpy's numbers are no bool

    return kept(task, scratch, measured)
