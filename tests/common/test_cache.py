"""Where compiled programs are kept: in the user's cache, or where that cannot be, elsewhere, said once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common import cache


def test_the_users_cache_is_taken_where_it_can_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "yet"))
    assert cache.directory() == str(tmp_path / "not" / "yet" / "mrclab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")
    assert not any(tmp_path.iterdir())  # to ask for the place makes nothing


def test_a_place_that_cannot_be_written_is_replaced_once_and_for_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nope")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = cache.directory()
    assert Path(found).parent.parent == tmp_path
    assert Path(found).parent.stat().st_mode & 0o777 == 0o700
    assert "/proc/nope/mrclab cannot be written" in capsys.readouterr().err
    assert cache.directory() == found == os.path.join(os.environ["XDG_CACHE_HOME"], "mrclab")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("how", ["link", "open to others", "file"])
def test_a_name_that_others_have_taken_is_passed_over_and_the_next_process_finds_the_same_folder(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In /tmp any user may make a folder of any name: it must not keep another user from working."""
    place = tmp_path / f"mrclab-cache-{os.geteuid()}"
    if how == "link":
        (tmp_path / "theirs").mkdir()
        place.symlink_to(tmp_path / "theirs")
    elif how == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    found = set()
    for _ in range(2):
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nope")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        found.add(Path(cache.directory()).parent)
    (own,) = found
    assert own.parent == tmp_path
    assert own != place
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_relative_place_is_ignored_as_the_xdg_specification_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "nosuch/relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")
