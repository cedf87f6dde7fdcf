"""One seed is one run: in any process, and in both forms of the endpoint, compiled and interpreted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.compiled import build as building
from common.compiled import finder
from common.compiled.unit import find
from endpoint import compiled

ROOT = Path(__file__).parents[3]
# Runs a scenario in virtual time and prints the form and a digest of all journals, but for what real clocks say.
PROGRAM = """
import hashlib, json, sys, tempfile
from pathlib import Path
from endpoint import FORM
from scenarios import library
from running.options import Choices
from running.runner import made
from running.spec import RunSpec
from running.transport_choice import transport
from topo.planfile import load_plan

name, seed = sys.argv[1], int(sys.argv[2])
scenario = library.find(name)
with tempfile.TemporaryDirectory() as folder:
    choices = Choices(
        transport(sys.argv[3]), load_plan(scenario.plan), seed=seed, world="simulated", time_factor=float(sys.argv[4])
    )
    run = made(RunSpec(scenario, choices), Path(folder))
    digest, lines = hashlib.sha256(), 0
    for path in sorted((run / "journal").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            if json.loads(line)["kind"] not in ("process", "options"):
                digest.update(line.encode())
                lines += 1
print(FORM.compiled, lines, digest.hexdigest())
"""


def runs(form: str, name: str, seed: int, transport: str, factor: float, **more: str) -> tuple[str, ...]:
    words = [sys.executable, "-c", PROGRAM, name, str(seed), transport, str(factor)]
    environment = {**os.environ, finder.SWITCH: form, "PYTHONHASHSEED": "random", **more}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.split())


@pytest.fixture(scope="module")
def build() -> None:
    """A build of the sources as they are. `./lab test` makes one; making one here would take a minute unasked."""
    if find(compiled.UNIT, compiled.UNIT.key()) is None:
        pytest.skip("the endpoint is not compiled as it is; ./lab compile")


@pytest.mark.parametrize(
    ("name", "transport"),
    [
        ("link-flap", "mrc"),
        pytest.param("incast", "mrc", marks=pytest.mark.slow),
        pytest.param("link-flap", "roce", marks=pytest.mark.slow),
    ],
)
@pytest.mark.smoke
def test_both_forms_write_the_same_journals_to_the_byte(build: None, name: str, transport: str) -> None:
    fast, lines, digest = runs("on", name, 7, transport, 0.02)
    slow, *same = runs("off", name, 7, transport, 0.02)
    assert (fast, slow) == ("True", "False")
    assert int(lines) > 100
    assert same == [lines, digest]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(building.QUICK) is None, reason="needs tcc")
@pytest.mark.parametrize("transport", ["mrc", "roce"])
def test_a_quick_build_writes_the_same_journals_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert building.build(compiled.UNIT, print, quick=True).quick
    fast, *made = runs("on", "link-flap", 7, transport, 0.02)
    slow, *same = runs("off", "link-flap", 7, transport, 0.02)
    assert (fast, slow, made) == ("True", "False", same)


@pytest.mark.slow
def test_twenty_runs_of_a_seed_have_one_hash_in_any_process_and_form(build: None) -> None:
    found = {
        runs(form, "link-flap", 11, "mrc", 0.05, PYTHONHASHSEED=hash_seed)[1:]
        for form in ("on", "off")
        for hash_seed in [str(number) for number in range(10)]
    }
    assert len(found) == 1
