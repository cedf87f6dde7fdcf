"""The verdicts of scenarios on a noisy machine: makes docs/results/noise.jsonl, unattended.

    python -m benchmarks.noise                               # everything: 750 runs, some eight hours
    python -m benchmarks.noise --results noise.jsonl         # the same in pieces: goes on where it ended
    python -m benchmarks.noise --results noise.jsonl --at-most 1 --noise core part # 0: the table so far

Runs the short form of each scenario under each kind of noise (`benchmarks/planted.py`), one seed of all of them after
the other, and prints a Markdown table of how many runs were true, unknown and false. With `--results`, each verdict is
a JSON line of that file (scenario, transport, noise, seed, verdict, reason, commit), and a run that has a line there is
not repeated. Beside MRC two broken transports must never be true where a fault is theirs to notice: spraying without
looking at path health, and RoCE without rerouting. Needs root, no lab running, and an otherwise idle machine. Exits
with 1 if MRC was ever false, a quiet or mild run was not true, or a broken one was.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.planted import KINDS, planted

SCENARIOS = ("link-flap", "switch-reboot", "nic-port", "spray", "incast", "grey-link")
LENGTHS = {"incast": ("--time", "0.6"), "grey-link": ("--time", "0.6")}  # of those without a short form
JUDGED = (0, 1, 3)  # exit statuses of `./lab run` with a verdict: true, false and unknown
FAULTY = ("link-flap", "switch-reboot", "spray", "grey-link")
TRANSPORTS = {"mrc": SCENARIOS, "roce": (*FAULTY, "nic-port"), "mrc-oblivious": FAULTY}
"""The scenarios of each. No link fails in `incast`, and a port that goes down tells every form of MRC."""
NOT_REROUTED = ("--reconvergence", "never")  # on a slow lab, a tenth of a second is less than a round trip


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the table."""

    scenario: str
    transport: str
    noise: str
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: true, false, unknown, or failed when there is no verdict; and why it is not true."""

    verdict: str
    reason: str = ""
    commit: str = ""  # of the code that ran


def cases(noises: Sequence[str], transports: Sequence[str], scenarios: Sequence[str], seeds: range) -> list[Case]:
    """Every run that is asked for; the first seed of all rows comes first, so that a part of the table is a sample."""
    rows = [(name, chosen, noise) for noise in noises for chosen in transports for name in TRANSPORTS[chosen]]
    return [Case(*row, seed) for seed in seeds for row in rows if row[0] in scenarios]


def read(path: Path) -> dict[Case, Outcome]:
    """The outcomes kept in a file; none where there is no file."""
    found: dict[Case, Outcome] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        with suppress(ValueError):  # a line that a crash has torn
            data = json.loads(line)
            case = Case(*(data[name] for name in Case.__dataclass_fields__))
            found[case] = Outcome(*(data[name] for name in Outcome.__dataclass_fields__))
    return found


def keep(path: Path, case: Case, outcome: Outcome) -> None:
    """Add an outcome to the file, even after a torn line."""
    torn = path.exists() and not path.read_text().endswith("\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write("\n" * torn + json.dumps({**asdict(case), **asdict(outcome)}) + "\n")


def commit() -> str:
    """The commit that is checked out, with a + when files differ from it; "" outside a repository."""
    words = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True).stdout.strip()


def run(case: Case, folder: Path, extra: Sequence[str]) -> Outcome:
    """One run under its noise."""
    words = [sys.executable, "-m", "cli", "run", case.scenario, "--transport", case.transport, "--plain"]
    words += [f"--seed={case.seed}", f"--runs={folder}", *LENGTHS.get(case.scenario, ("--short",))]
    words += [*NOT_REROUTED * (case.transport == "roce"), *extra]
    with (folder / f"{case.scenario}-{case.transport}-{case.noise}-{case.seed}.log").open("w") as log:
        before = (folder / "latest").resolve()
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        with planted(case.noise, process.pid, case.seed):
            status = process.wait()
    if status not in JUDGED and (folder / "latest").resolve() == before:
        return Outcome("failed", f"exit status {status}", commit())
    document = json.loads((folder / "latest" / "verdict.json").read_text())
    verdict = document["verdict"]  # a run that an error ends has one as well
    return Outcome(verdict, "" if verdict == "true" else reasons(document["findings"]), commit())


def reasons(findings: Sequence[Mapping[str, Any]]) -> str:
    """Why a run is not true."""
    return "; ".join(f"{found['check']}: {found['reason']}" for found in findings if found["holds"] is not True)


def right(transport: str, noise: str, verdicts: Counter[str]) -> bool:
    """Whether a row is as it must be: MRC never false, and true with little noise; a broken one never true."""
    if transport != "mrc":
        return not verdicts["true"] and not verdicts["failed"]
    if noise in ("none", "mild"):
        return set(verdicts) == {"true"}
    return not verdicts["false"] and not verdicts["failed"]


def table(outcomes: dict[Case, Outcome]) -> tuple[list[str], bool]:
    """The lines of the Markdown table, and whether every row is as it must be."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for case, outcome in outcomes.items():
        rows.setdefault((case.noise, case.scenario, case.transport), Counter())[outcome.verdict] += 1
    lines = [
        "| scenario | transport | noise | true | unknown | false | failed | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    all_right = True
    for noise, scenario, transport in sorted(rows, key=lambda row: (KINDS.index(row[0]), row)):
        verdicts = rows[noise, scenario, transport]
        good = right(transport, noise, verdicts)
        all_right = all_right and good
        counts = [str(verdicts[word]) for word in ("true", "unknown", "false", "failed")]
        lines.append(f"| {' | '.join([scenario, transport, noise, *counts, '' if good else 'wrong'])} |")
    return lines, all_right


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each scenario under each noise (10)")
    parser.add_argument("--noise", nargs="+", choices=KINDS, default=list(KINDS[:-1]))
    parser.add_argument("--transport", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS))
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--folder", type=Path, default=Path("runs/noise"), help="where runs are kept (runs/noise)")
    parser.add_argument("--results", type=Path, help="keep verdicts in this file, and repeat none that it has")
    parser.add_argument("--at-most", type=int, metavar="N", help="end after so many runs")
    parser.add_argument("extra", nargs="*", help="after --: more words for each run, such as -- --rate 5")
    chosen = parser.parse_args(arguments)
    known = read(chosen.results) if chosen.results else {}
    chosen.folder.mkdir(parents=True, exist_ok=True)
    wanted = cases(chosen.noise, chosen.transport, chosen.scenario, range(1, chosen.runs + 1))
    for case in [case for case in wanted if case not in known][: chosen.at_most]:
        outcome = known[case] = run(case, chosen.folder, chosen.extra)
        if chosen.results:
            keep(chosen.results, case, outcome)
        told = f"{case.scenario}, {case.transport}, {case.noise}, seed {case.seed}: {outcome.verdict}"
        print(f"{told}: {outcome.reason}" if outcome.reason else told, file=sys.stderr, flush=True)
    lines, good = table(known)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
