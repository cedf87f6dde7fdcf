"""The right to change a lab, where a lab is taken down and another `up` begins at the same moment."""

from pathlib import Path

import pytest

from topo.emulation import state
from topo.emulation.state import LabError


def test_a_down_that_ends_leaves_the_files_of_the_next_up(tmp_path: Path) -> None:
    """Between the removal of the files and the end of `down`, another process may have made the folder anew."""
    root = tmp_path / "lab"
    down, newcomer = state.locked(root), state.locked(root)
    with down:
        (root / "lab.json").write_text("{}")
        state.remove(root)
        newcomer.__enter__()
        (root / ".lab.json.new").write_text("{}")  # the newcomer's record, not in its place yet
    with pytest.raises(LabError, match="being changed by process"), state.locked(root):
        pass
    (root / ".lab.json.new").rename(root / "lab.json")
    newcomer.__exit__(None, None, None)
    assert (root / "lab.json").exists()


def test_a_right_that_made_no_lab_leaves_no_folder(tmp_path: Path) -> None:
    root = tmp_path / "lab"
    with state.locked(root):
        assert root.exists()
    assert not root.exists()
