"""The keys of figures' runs cover the code that folds the runs to numbers."""

import ast
import sys
from pathlib import Path
from types import FrameType

import pytest

from judging.run import Run
from paper import catalogue, perform
from running.runner import made


def test_only_the_code_that_measures_a_figure_makes_it_again() -> None:
    def names(figure: str) -> list[str]:
        return [Path(name).stem for name in perform.measuring(catalogue.file_of(figure))]

    assert names("16") == ["random_loss"]
    assert names("18") == ["clock", "incast", "measuring", "streams"]
    # The large forms measure by the code of the usual ones; an edit of it left their keys alone.
    assert names("16-large") == ["figure_16", "large", "random_loss"]


def test_a_module_that_no_key_covers_reads_no_run() -> None:
    for name in perform.DATA - {"figure"}:
        tree = ast.parse((catalogue.FOLDER / f"{name}.py").read_text())
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not [module for module in modules if module.partition(".")[0] == "judging"], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["4", "5.2.1", "9a", "14", "15", "16", "18", "20"])
def test_no_module_of_data_takes_part_in_measuring(name: str, tmp_path: Path) -> None:
    """One figure of each way of measuring. The functions that Python calls are written down meanwhile."""
    figure = catalogue.find(name)
    part = min(figure.parts(True), key=lambda part: part.plan.host_count * sum(phase.seconds for phase in part.phases))
    run = Run.open(made(perform.spec(name, part, True), tmp_path))
    called: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(catalogue.FOLDER) and not frame.f_code.co_name.startswith("<"):
            called.add(str(path.relative_to(catalogue.FOLDER.parent)))

    sys.setprofile(look)
    try:
        part.measure(run)
    finally:
        sys.setprofile(None)
    assert called, "nothing of this room was called"
    file = catalogue.file_of(name)
    assert called <= {*perform.measuring(file), str(file.relative_to(catalogue.FOLDER.parent))}
