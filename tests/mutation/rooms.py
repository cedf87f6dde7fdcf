"""The rooms that are mutated, how many mutants each gets, and which tests are to kill them."""

import random
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants_of


@dataclass(frozen=True)
class Room:
    """Modules by patterns below the root, and the tests that are to kill their mutants, the quickest first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    count: int  # mutants of a sample of 300
    without: tuple[str, ...] = ()  # paths in `modules` that are not this room's, or tests that do not look at it

    def files(self, root: Path) -> list[Path]:
        """The room's modules, sorted."""
        left_out = {root / name for name in self.without}
        found = {path for pattern in self.modules for path in root.glob(pattern)} - left_out
        return sorted(path for path in found if path.name != "__init__.py")

    def every(self, root: Path) -> list[Mutant]:
        """All mutants of the room."""
        return [mutant for path in self.files(root) for mutant in mutants_of(path, root)]

    def sample(self, root: Path, count: int, seed: int) -> list[Mutant]:
        """Mutants drawn without replacement from all of the room's; fewer where it has fewer."""
        every = self.every(root)
        return random.Random(seed).sample(every, min(count, len(every)))


ROOMS: dict[str, Room] = {
    "transport": Room(
        ("endpoint/mrc/*.py", "endpoint/mrc/*/*.py", "endpoint/nic/*.py"),
        ("tests/endpoint/mrc",),
        60,
        # The compiled forms are other builds of the same text, and take a compiler's time.
        ("tests/endpoint/mrc/test_codec_in_c.py", "tests/endpoint/mrc/test_codec_in_endpoint.py"),
    ),
    "judging": Room(
        ("judging/*.py", "judging/measures/*.py"),
        ("tests/judging", "tests/scenarios/test_scenarios.py"),
        60,
        ("tests/judging/test_labels.py", "tests/judging/test_report_in_browser.py"),
    ),
    "plans and faults": Room(("topo/*.py", "topo/fault/*.py"), ("tests/topo",), 50, ("topo/cli.py",)),
    "controller": Room(("controller/*.py",), ("tests/controller",), 30),
    "reference engine": Room(
        ("switch/reference/*.py",),
        (
            "tests/switch/reference",
            "tests/switch/stf",
            "tests/switch/differential",
            "tests/switch/native/test_flow_control.py",
        ),
        70,
    ),
    "statistics": Room(
        tuple(
            f"studies/sweeping/{name}.py"
            for name in ("metric", "paired", "proportion", "quantile", "statement", "until")
        ),
        ("tests/studies/test_sweep_statistics.py", "tests/studies/test_sweep_store.py"),
        20,
    ),
    "invariants of the hunt": Room(
        tuple(f"studies/hunting/{name}.py" for name in ("attempt", "survivable", "invariants")),
        ("tests/studies/test_hunt.py",),
        10,
    ),
}
