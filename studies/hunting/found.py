"""A failing case as a scenario file: the result of a hunt."""

import pprint
from pathlib import Path

import tomli_w

from common import files
from common.quoting import command, docstring
from studies.hunting.attempt import AttemptOutcome
from studies.hunting.case import Case

__all__ = ["OF_ANY", "repeat", "write"]

TEMPLATE = Path(__file__).with_name("found.template").read_text()
REPEATED = """[
        replace(fault, at_s=fault.at_s + {every!r} * repeat, phase=phase.name)
        for phase in PHASES
        if phase.name.startswith("faults")
        for repeat in range({repeats})
        for fault in FAULTS
    ]"""
OF_MRC = ("studies.hunting.invariants", "must_hold", "must_hold(setting)")
OF_ANY = ("judging.checks", "bytes_right, messages_complete", "[bytes_right(), messages_complete()]")
"""Checks that hold for any algorithm: their module, their names, and what the scenario says."""


def write(
    folder: Path,
    name: str,
    case: Case,
    outcome: AttemptOutcome,
    number: int,
    runs: int,
    checks: tuple[str, str, str] = OF_MRC,
) -> Path:
    """`NAME.py` and the plan beside it, `NAME.toml`; the path of the former. No text of a user is code in it."""
    files.make_folder(folder)
    path = folder / f"{name}.py"
    check, reason = next(iter(outcome.broken.items()))
    repeated = case.rounds * case.repeats > 1
    sentence, (module, names, judged) = f"{check}: {reason}", checks
    text = TEMPLATE.format(
        told=docstring(f"{sentence}\n\nFound by a hunt (its try {number}) and shrunk in {runs} runs.\n"),
        repeat=repeat(path, case.seed),
        imports="from dataclasses import replace\n" if repeated else "",
        module=module,
        names=names,
        checks=judged,
        sentence=sentence,
        name=name,
        workloads=listed(case.workloads),
        faults=listed(case.faults),
        phases=f"({', '.join(repr(phase) for phase in case.phases)},)",
        timeline=REPEATED.format(every=case.faults_s, repeats=case.repeats) if repeated else "FAULTS",
        settings=case.transport_settings,
        count_records=case.repeats > 1,
    )
    files.write(path.with_suffix(".toml"), tomli_w.dumps(case.plan_document()))
    files.write(path, text)
    return path


def repeat(path: Path, seed: int) -> str:
    """The command that runs a found scenario as it was found."""
    here = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return command("run", here, "--world", "simulated", "--seed", seed)


def listed(items: object) -> str:
    """A tuple of dataclasses as Python, an entry a line."""
    return pprint.pformat(list(items) if isinstance(items, tuple) else items, width=110, sort_dicts=False)
