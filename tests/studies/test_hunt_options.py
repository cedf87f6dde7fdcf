"""Options of a hunt that are refused before the first try."""

from pathlib import Path

import pytest

from cli.main import main
from studies.hunting.attempt_pool import AttemptPool


@pytest.mark.parametrize("option", ["--output", "--runs"])
def test_a_folder_that_cannot_keep_a_finding_is_refused_before_the_hunt(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(AttemptPool, "outcomes", lambda *_: pytest.fail("a try was made"))
    file = tmp_path / "file"
    file.write_text("kept")
    for folder in (file, file / "below" / "it"):
        assert main(["hunt", "--tries", "1", "--plain", option, str(folder)]) == 2
        assert capsys.readouterr().err.endswith(
            f"{option} must be a folder that can be written, or made (got {folder})\n"
        )
    assert file.read_text() == "kept"
