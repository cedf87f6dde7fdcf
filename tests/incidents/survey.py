"""Many drawn incidents, each gone through by programs: faults shown, secrets leaked, and answers of two solvers.

`python -m tests.incidents --count 100` prints a row per level.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.scratch import Scratch
from common.terminal.columns import aligned
from operations.incident import solving, text
from operations.incident.draw import CALLED_S, Incident, draw
from operations.incident.kind import KINDS
from operations.incident.score import components, score
from operations.incident.session import IncidentSession, World
from operations.incident.words import parse
from running import RunDirectory
from tests.incidents import solvers

OTHER_TOOLS = ("trace {a} {b}", "capture {cable} --seconds 0.1", "prober --all", "wait 0.1")
"""Those that a search everywhere does without."""
SEARCHED = ("inspect", "tables {leaf}", "log {a} --count 200", "paths {a} {b}")
"""Of a search everywhere, which on real links would take a minute."""
CALLED_REAL_S = 9.0  # of real time: everything that is hidden has begun
SEED_LEAST = 1_000_000
"""A smaller seed is in every file by chance."""
SECRET_WORDS = ("hidden", "truth", "onset", "oddit")


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One incident. `shown` counts its faults that their recorded path shows; `leaks` are secrets found in answers or
    files; `crash` is the error that ended the incident, or ""; `naive` and `search` are the verdicts of two solvers,
    the second in virtual time only."""

    level: int
    seed: int
    kinds: tuple[str, ...]
    shown: int
    leaks: tuple[str, ...]
    crash: str
    naive: str
    search: str


def secrets(incident: Incident) -> list[str]:
    """What no answer, file or process may hold before the end, as regular expressions."""
    numbers = [one.numbers[name] for one in incident.hidden for name in ("seed", "percent") if name in one.numbers]
    if incident.seed >= SEED_LEAST:
        numbers.append(incident.seed)
    words = map(re.escape, (*KINDS, *SECRET_WORDS))
    return [*words, *(rf"(?<![\d.]){re.escape(str(number))}(?!\d)" for number in numbers)]


def leaks(incident: Incident, texts: Iterable[str]) -> tuple[str, ...]:
    """The secrets that these texts hold."""
    pattern = re.compile("|".join(secrets(incident)))
    return tuple(sorted({found[0] for said in texts for found in pattern.finditer(said)}))


def surveyed(seed: int, level: int, world: World = "simulated") -> Surveyed:
    """One incident from the call to the end."""
    incident = draw(seed, level)
    kinds = tuple(one.kind for one in incident.hidden)
    shown, crash, naive, search = 0, "", "", ""
    found: tuple[str, ...] = ()
    with Scratch("mrclab-incident-") as folder:
        try:
            called_s = CALLED_S if world == "simulated" else CALLED_REAL_S
            opened = IncidentSession(incident, RunDirectory.create(folder, "incident", 1), called_s, world)
            try:
                naive, search, shown, found = _gone_through(opened)
            finally:
                opened.close()
        except Exception as error:  # a survey counts what ended an incident
            crash = f"{type(error).__name__}: {error}"
    return Surveyed(level, seed, kinds, shown, found, crash, naive, search)


def _gone_through(opened: IncidentSession) -> tuple[str, str, int, tuple[str, ...]]:
    incident, plan, virtual = opened.incident, opened.incident.plan, opened.live.virtual_time
    said: list[str] = [json.dumps(opened.status()), *text.briefing(opened.status())]

    def do(line: str) -> Mapping[str, Any]:
        tool, arguments = parse(line)
        answer = opened.do(tool, arguments, line)
        said.append(json.dumps(answer))
        said.extend(text.SHOW[tool](answer) if tool in text.SHOW else ())
        return answer

    naive, search = score(plan, incident.hidden, solvers.guess(plan, do)).word, ""
    if virtual:
        search = score(plan, incident.hidden, solvers.solve(plan, incident.tickets, do)).word
    first, *_, last = plan.hosts()
    for line in OTHER_TOOLS if virtual else (*OTHER_TOOLS, *SEARCHED):
        do(line.format(a=first, b=last, cable="p0l0-p0s0", leaf="p0l0"))
    shown = 0
    for one in incident.hidden:
        findings = solving.shown_by(plan, incident.tickets, do, solving.commands(plan, one), virtual_time=virtual)
        shown += any(each.kind == one.kind and each.component in components(one) for each in findings)
    return naive, search, shown, leaks(incident, [*said, *opened.live.visible()])


def table(rows: Sequence[Surveyed]) -> list[str]:
    """A row per level, one for level 3 and above, and every incident in which something was amiss."""
    lines = [["LEVEL", "INCIDENTS", "FAULTS", "SHOWN", "LEAKS", "CRASHES", "NAIVE SOLVER", "SEARCH EVERYWHERE"]]
    for level in sorted({row.level for row in rows}):
        lines.append(_counts(str(level), [row for row in rows if row.level == level]))
    upper = [row for row in rows if row.level >= 3]
    if upper:
        lines.append(_counts("3 to 5", upper))
    amiss = [
        f"level {row.level}, seed {row.seed} ({', '.join(row.kinds) or 'nothing hidden'}): "
        + "; ".join(filter(None, [_short(row), f"leaks {', '.join(row.leaks)}" if row.leaks else "", row.crash]))
        for row in rows
        if not consistent(row)
    ]
    return [*aligned(lines), *amiss]


def consistent(row: Surveyed) -> bool:
    """Whether every fault was shown, nothing leaked and nothing crashed."""
    return row.shown == len(row.kinds) and not row.leaks and not row.crash


def _short(row: Surveyed) -> str:
    return "" if row.crash or row.shown == len(row.kinds) else f"{row.shown} of {len(row.kinds)} faults shown"


def _counts(name: str, rows: Sequence[Surveyed]) -> list[str]:
    faults, shown = sum(len(row.kinds) for row in rows), sum(row.shown for row in rows)
    amiss = [sum(bool(row.leaks) for row in rows), sum(bool(row.crash) for row in rows)]
    shares = [_share([getattr(row, solver) for row in rows]) for solver in ("naive", "search")]
    return [name, str(len(rows)), str(faults), str(shown), *map(str, amiss), *shares]


def _share(words: Sequence[str]) -> str:
    right = sum(word == "right" for word in words)
    return f"{right} right ({right / len(words):.0%})" if any(words) else "not tried"
