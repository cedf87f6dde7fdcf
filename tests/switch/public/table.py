"""The table of other people's P4 programs: python -m tests.switch.public.table [NAME …].

For each repository whose checkout is in the folder that MRCLAB_P4_CHECKOUTS names: how many programs for v1model were
tried, are compiled and load, and why the others do not. For p4c its packet tests on both engines as well.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from common.records import Frozen
from p4c import CompileError, compile_program
from p4c.model import ModelError, Program, load_program
from switch import EngineError
from switch.native import EngineBuildError
from switch.reference import ReferenceEngine
from switch.stf import StfError, parse, run
from switch.stf.programs import ENGINES, make_engine
from tests.switch.public.checkouts import found

SHOWN = 6  # reasons per repository


class Repository(Frozen):
    """Which programs of a repository are tried."""

    name: str
    what: str
    pattern: str = "**/*.p4"


REPOSITORIES = (
    Repository("tutorials", "solutions", "exercises/*/solution/*.p4"),
    Repository("tutorials", "all", "exercises/**/*.p4"),
    Repository("p4-learning", "solutions", "exercises/**/solution/**/*.p4"),
    Repository("p4-learning", "all"),
    Repository("p4-utils", "all"),
    Repository("ngsdn-tutorial", "all"),
    Repository("p4-int", "all"),
    Repository("int-p4", "all"),
    Repository("finsy", "all"),
    Repository("sonic-pins", "SAI P4", "sai_p4/instantiations/google/*.p4"),
    Repository("behavioral-model", "all"),
    Repository("p4-guide", "all"),
    Repository("4ward", "all"),
    Repository("p4c", "v1model samples", "testdata/p4_16_samples/**/*.p4"),
)  # fmt: skip


def revision(folder: Path) -> str:
    words = ["git", "-C", str(folder), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def programs(repository: Repository, folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob(repository.pattern)):
        if path.is_file() and re.search(r"\bV1Switch\s*(<[^>]*>)?\s*\([^)]", with_parts(path)):
            yield path


def with_parts(path: Path) -> str:
    """The text without comments, and that of the files that it includes from its own folder."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(errors="replace"), flags=re.DOTALL)
    parts = [path.parent / name for name in re.findall(r'#include\s+"([^"]+)"', text)]
    return "".join([text, *(part.read_text(errors="replace") for part in parts if part.is_file())])


def compiled(path: Path, folder: Path) -> Program:
    """Also with the folder of the repository and that of the program's exercise to look in."""
    made = compile_program(path, include_paths=[path.parent, path.parent.parent, folder])
    return load_program(made.json_text.encode())


def reason(error: Exception) -> str:
    """A refusal without its names and numbers."""
    line = next((line for line in str(error).splitlines() if "error[" in line), str(error).splitlines()[0])
    line = line.partition("error[")[2].partition("]: ")[2] or line
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "…", line))[:90]


def tried(what: Callable[[], object], reasons: Counter[str]) -> bool:
    try:
        what()
    except (CompileError, ModelError, EngineError, StfError, EngineBuildError, OSError, RecursionError) as error:
        reasons[reason(error)] += 1
        return False
    return True


def packet_tests(path: Path, program: Program, results: dict[str, Counter[str]]) -> None:
    stf = path.with_suffix(".stf")
    if not stf.exists() or not re.search(r"^\s*expect\b", stf.read_text(), re.MULTILINE):
        return
    for name in ENGINES:
        try:
            failures = run(make_engine(name), program, parse(stf.read_text()))
            results[name]["failed" if failures else "passed"] += 1
            if failures:
                print(f"  {stf.name}: {name}: {failures[0]}", file=sys.stderr)
        except (StfError, EngineError, EngineBuildError) as error:
            results[name]["refused"] += 1
            print(f"  {stf.name}: {name}: {reason(error)}", file=sys.stderr)


def row(repository: Repository, folder: Path) -> str:
    """A row of Markdown: name, revision, kind, tried, compiled, loaded, packet tests, reasons."""
    reasons: Counter[str] = Counter()
    results: dict[str, Counter[str]] = {name: Counter() for name in ENGINES}
    count = done = loaded = 0
    for path in programs(repository, folder):
        count += 1
        made: list[Program] = []
        if not tried(lambda path=path, made=made: made.append(compiled(path, folder)), reasons):
            print(f"  {path.relative_to(folder)}: {next(reversed(reasons))}", file=sys.stderr)
            continue
        done += 1
        if tried(lambda made=made: ReferenceEngine().load(made[0]), reasons):
            loaded += 1
            packet_tests(path, made[0], results)
    stf = "; ".join(f"{name}: {dict(found)}" for name, found in results.items() if found)
    why = "; ".join(f"{number} {text}" for text, number in reasons.most_common(SHOWN))
    cells = (repository.name, revision(folder), repository.what, count, done, loaded, stf or "-", why or "-")
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def main(names: list[str]) -> int:
    print("| repository | revision | programs | tried | compiled | loaded | packet tests | refused |")
    print("|---|---|---|---:|---:|---:|---|---|")
    for repository in REPOSITORIES:
        folder = found(repository.name)
        if folder is not None and (not names or repository.name in names):
            print(row(repository, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
