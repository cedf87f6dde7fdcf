"""The verdicts of scenarios on a noisy machine: makes the table of docs/results.md, unattended.

    python benchmarks/noise.py                               # everything: some two hours and a half
    python benchmarks/noise.py --runs 1 --noise none freeze --scenario link-flap

Runs the short form of each scenario under each kind of noise (`benchmarks/planted.py`), and prints a Markdown row as
soon as it is known: how many runs were true, unknown and false. Beside MRC two broken transports must stay false under
mild noise: spraying without looking at path health over cut paths, and RoCE while links flap. Needs root, no lab
running, and nobody else on the machine. Exits with 1 if MRC was ever false, a quiet or mild run was not true, or a
broken one not false.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.planted import KINDS, planted

SCENARIOS = ("link-flap", "switch-reboot", "spray", "nic-port", "collision")
BROKEN = (("spray", "mrc-oblivious"), ("link-flap", "roce"))
WORDS = {0: "true", 1: "false", 3: "unknown"}


def run(scenario: str, transport: str, noise: str, seed: int, folder: Path, extra: Sequence[str]) -> str:
    """One run's verdict, or "failed" when there is none."""
    words = [sys.executable, "-m", "scenarios", "run", scenario, "--short", "--transport", transport]
    words += ["--seed", str(seed), "--runs", str(folder), "--plain", *extra]
    with (folder / f"{scenario}-{transport}-{noise}-{seed}.log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        with planted(noise, process.pid, seed):
            status = process.wait()
    return WORDS.get(status, "failed")


def reasons(folder: Path) -> str:
    """Why the newest run is not true."""
    document = json.loads((folder / "latest" / "verdict.json").read_text())
    return "; ".join(f"{f['check']}: {f['reason']}" for f in document["findings"] if f["holds"] is not True)


def right(transport: str, noise: str, verdicts: Counter[str]) -> bool:
    """Whether a row is as it must be: MRC never false, and true with little noise; a broken one always false."""
    if transport != "mrc":
        return set(verdicts) == {"false"}
    if noise in ("none", "mild"):
        return set(verdicts) == {"true"}
    return not verdicts["false"] and not verdicts["failed"]


def main() -> int:
    """Prints the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each scenario under each noise (10)")
    parser.add_argument("--noise", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--folder", type=Path, default=Path("runs/noise"), help="where runs are kept (runs/noise)")
    parser.add_argument("extra", nargs="*", help="after --: more words for each run, such as -- --rate 5")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    rows = [(name, "mrc", noise) for noise in chosen.noise for name in chosen.scenario]
    rows += [(name, broken, "mild") for name, broken in BROKEN if name in chosen.scenario and "mild" in chosen.noise]
    wrong = 0
    print("| scenario | transport | noise | true | unknown | false | |\n|---|---|---|---|---|---|---|", flush=True)
    for scenario, transport, noise in rows:
        verdicts: Counter[str] = Counter()
        for seed in range(1, chosen.runs + 1):
            verdict = run(scenario, transport, noise, seed, chosen.folder, chosen.extra)
            verdicts[verdict] += 1
            if verdict in ("unknown", "false") and (verdict == "unknown" or transport == "mrc"):
                told = reasons(chosen.folder)
                print(f"{scenario}, {transport}, {noise}, seed {seed}: {verdict}: {told}", file=sys.stderr, flush=True)
        good = right(transport, noise, verdicts)
        wrong += not good
        counts = [str(verdicts[word]) for word in ("true", "unknown", "false")]
        print(f"| {' | '.join([scenario, transport, noise, *counts, '' if good else 'wrong'])} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
