"""Makes one run and writes down what it loads: `python tests/running/traced_run.py FOLDER SCENARIO PLAN TIME`.

`sitecustomize.py`, which `write_hook` makes, does so for every Python process of the run, programs in hosts included.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOOK = """\
import os, sys
_log = os.open({log!r} + f"/{{os.getpid()}}.opened", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def _told(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and not (arguments[2] or 0) & 3:
        os.write(_log, b"open " + os.fsencode(arguments[0]) + b"\\n")
    elif event == "import":
        os.write(_log, b"import " + arguments[0].encode() + b"\\n")
sys.addaudithook(_told)
"""


def write_hook(folder: Path) -> None:
    """Have Python processes with `folder` in PYTHONPATH write what they open and import to `folder/PID.opened`."""
    (folder / "sitecustomize.py").write_text(HOOK.format(log=str(folder)))


def loaded(folder: Path) -> set[Path]:
    """The files of the clone that the processes have read or imported, as paths below it."""
    found: set[Path] = set()
    for log in folder.glob("*.opened"):
        for line in log.read_text().splitlines():
            event, _, name = line.partition(" ")
            if event == "import":
                place = ROOT / name.replace(".", "/")
                found |= {path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()}
                continue
            path = Path(name)
            if path.parent.name == "__pycache__":
                path = path.parents[1] / f"{path.name.partition('.')[0]}.py"
            found |= {path} if path.is_absolute() and path.is_file() else set()
    tracked = {path.relative_to(ROOT) for path in found if path.is_relative_to(ROOT)}
    return {path for path in tracked if path.parts[0][0] != "." and path.parts[0] != "tests"}


def main(folder: str, scenario: str, plan: str, factor: str) -> None:
    """One run in virtual time; `folder/called` gets the files of `judging` of which a function was called."""
    from running.directory import RunDirectory
    from running.options import Choices
    from running.runner import launch, prepare
    from running.spec import RunSpec
    from running.transport_choice import transport
    from scenarios import library
    from topo.planfile import load_plan

    called: set[str] = set()

    def look(frame: object, event: str, argument: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and "/judging/" in code.co_filename and not code.co_name.startswith("<"):
            called.add(f"{code.co_filename} {code.co_qualname if sys.version_info >= (3, 11) else code.co_name}")

    choices = Choices(transport("mrc"), load_plan(plan), 1, world="simulated", time_factor=float(factor))
    found = library.find(scenario)
    sys.setprofile(look)
    prepared = prepare(RunSpec(found, choices))
    launch(prepared.runner(RunDirectory.create(Path(folder) / "runs", scenario, 1)))
    sys.setprofile(None)
    (Path(folder) / "called").write_text("".join(f"{one}\n" for one in sorted(called)))


if __name__ == "__main__":
    main(*sys.argv[1:])
