"""A machine that lacks things, for the script `lab`: a PATH that holds a few tools and fakes."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.helpers.waiting import heeding_interrupts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(file.parent for file in ROOT.glob("packages/*/pyproject.toml"))
IN_BARE = ":".join(map(str, [ROOT, *PACKAGES]))
IN_PLACE = " ".join(f"--editable {folder}" for folder in [ROOT, *PACKAGES])
PLAIN = (
    "sh", "basename", "dirname", "readlink", "cat", "head", "cksum", "tr", "env", "mkdir", "chmod", "cp", "flock",
    "sed", "rm", "sleep", "ls", "mv",
)  # fmt: skip
PYTHON = """#!/bin/sh
echo "python $*" >>"$LOG"
case "$*" in
*"-m cli --needs"*) shift 3; cd "$ROOT" || exit; told="$ANSWERS/$(echo "$*" | tr / _)"
    [ -e "$told" ] || {
        "$REAL" -c "$MAIN" "$@" >"$told.out" 2>"$told.err"
        echo "$?" >"$told.$$" && mv "$told.$$" "$told"
    }
    cat "$told.err" >&2; cat "$told.out"; read -r status <"$told"; exit "$status" ;;
*"-m common.giving"*) exec "$REAL" "$@" ;;
*Python.h*) [ -e "$FAKES/python3-dev" ] ;;
*ensurepip*) [ -e "$FAKES/python3-venv" ] ;;
--version) echo Python 3.11.2 ;;
*"-m venv"*) for place; do :; done; mkdir -p "$place/bin" && cp "$FAKES/python3" "$place/bin/python" ;;
esac
"""
APT = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
for word in "$@"; do case $word in python3-*) : >"$FAKES/$word" ;; esac; done
"""


@dataclass(frozen=True)
class Machine:
    """A PATH of its own: the few tools of any system, fakes that write down how they are called, nothing else.

    What words need is asked of the command line once for all machines beside this one.
    """

    folder: Path
    checkout: Path = ROOT

    def run(
        self,
        *words: str,
        environment: Mapping[str, str] = MappingProxyType({}),
        fresh: bool = True,
        script: Path | None = None,
        user: int | None = None,
        umask: int = 0o022,
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.folder / "bin"),
            "FAKES": str(self.folder / "bin"),
            "LOG": str(self.folder / "log"),
            "REAL": sys.executable,
            "ANSWERS": str(self.folder.parent / "answers"),
            "MAIN": "import sys; from cli.main import main; sys.exit(main())",
            "ROOT": str(ROOT),
            "MRCLAB_VENV": str(self.folder / "venv"),
            **environment,
        }
        if fresh or not (self.folder / "log").exists():
            (self.folder / "log").write_text("")
        return subprocess.run(
            [str(self.folder / "bin" / "sh"), str(script or self.checkout / "lab"), *words],
            env=environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60,
            user=user, umask=umask, preexec_fn=heeding_interrupts,
        )  # fmt: skip

    @property
    def log(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()

    def installed(self, *words: str) -> set[str]:
        """The Debian packages that this command line asks for."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        installs = [line for line in self.log if line.startswith("apt-get install")]
        return {word for line in installs for word in line.split()[2:] if not word.startswith("-")}

    def fake(self, name: str, text: str, folder: str = "bin") -> None:
        file = self.folder / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
