"""A failing case as a scenario file: the result of a hunt."""

from __future__ import annotations

import pprint
from pathlib import Path

import tomli_w

from common import files
from studies.hunting.attempt import AttemptOutcome
from studies.hunting.case import Case

TEMPLATE = '''"""{sentence}

Found by a hunt (its try {number}) and shrunk in {runs} runs. Repeat:
    ./lab run {path} --world simulated --seed {seed}
"""

from pathlib import Path

from studies.hunting.invariants import must_hold
from scenarios.scenario import Phase, Scenario, TimedFault, Workload

WORKLOADS = {workloads}
FAULTS = {faults}
PHASES = {phases}

SCENARIO = Scenario(
    name={name!r},
    title="What must always hold has held",
    description={sentence!r},
    plan=str(Path(__file__).with_suffix(".toml")),
    workloads=lambda setting: WORKLOADS,
    timeline=lambda setting: {timeline},
    checks=lambda setting: must_hold(setting),
    phases=PHASES,
    settings={settings!r},
    count_records={count_records!r},
)
'''
REPEATED = """[
        replace(fault, at_s=fault.at_s + {every!r} * repeat, phase=phase.name)
        for phase in PHASES
        if phase.name.startswith("faults")
        for repeat in range({repeats})
        for fault in FAULTS
    ]"""


def write(folder: Path, name: str, case: Case, outcome: AttemptOutcome, number: int, runs: int) -> Path:
    """`NAME.py` and the plan beside it, `NAME.toml`; the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    check, reason = next(iter(outcome.broken.items()))
    repeated = case.rounds * case.repeats > 1
    text = TEMPLATE.format(
        sentence=f"{check}: {reason}".replace('"""', "'''"),
        number=number,
        runs=runs,
        path=path,
        seed=case.seed,
        name=name,
        workloads=listed(case.workloads),
        faults=listed(case.faults),
        phases=f"({', '.join(repr(phase) for phase in case.phases)},)",
        timeline=REPEATED.format(every=case.faults_s, repeats=case.repeats) if repeated else "FAULTS",
        settings=case.transport_settings,
        count_records=case.repeats > 1,
    )
    if repeated:
        text = text.replace("from pathlib", "from dataclasses import replace\nfrom pathlib", 1)
    files.write(path.with_suffix(".toml"), tomli_w.dumps(case.plan_document()))
    files.write(path, text)
    return path


def listed(items: object) -> str:
    """A tuple of dataclasses as Python, an entry a line."""
    return pprint.pformat(list(items) if isinstance(items, tuple) else items, width=110, sort_dicts=False)
