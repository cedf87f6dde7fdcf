"""Where compiled programs are kept: in the user's cache, or where that cannot be, elsewhere, said once."""

import os
from pathlib import Path
from typing import Any

import pytest

from common import cache, files


@pytest.fixture(autouse=True)
def root_without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of root get the replacement that every user gets."""
    monkeypatch.setattr(cache, "_ROOTS", "/proc/nope")


def test_the_users_cache_is_taken_where_it_can_be_made_and_a_relative_place_ignored(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "yet"))
    assert cache.directory() == str(tmp_path / "not" / "yet" / "mrclab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")
    assert not any(tmp_path.iterdir())  # to ask for the place makes nothing
    monkeypatch.setenv("XDG_CACHE_HOME", "nosuch/relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")


def test_a_place_that_cannot_be_written_is_replaced_once_and_for_children(monkeypatch, tmp_path, capsys) -> None:
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


STRANGER = 1234567


def stranger_owns(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """As if another user had made these files: only root could hand them over."""
    found, stranger = os.stat, {os.path.realpath(path) for path in paths}

    def stat(path: Any, **options: Any) -> os.stat_result:
        status = found(path, **options)
        own = isinstance(path, int) or os.path.realpath(path) not in stranger
        return status if own else os.stat_result((*status[:4], STRANGER, *status[5:]))

    monkeypatch.setattr(os, "stat", stat)


@pytest.mark.parametrize("part", ["", "home", "home/.cache", "home/.cache/mrclab"])
@pytest.mark.parametrize("how", [0o777, 0o775, "stranger", "sticky"])
def test_a_cache_that_another_user_could_write_or_exchange_is_replaced_and_not_executed(
    how: int | str, part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sudo -E` keeps HOME and XDG_CACHE_HOME: root executed what their owner had put there."""
    place = tmp_path / "top" / "home" / ".cache" / "mrclab"
    place.mkdir(parents=True)
    for folder in (place, *list(place.parents)[:4]):
        folder.chmod(0o755)
    changed = tmp_path / "top" / part
    if how == "stranger":
        stranger_owns(monkeypatch, changed)
    else:
        changed.chmod(0o1777 if how == "sticky" else int(how))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.parent))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found, said = cache.directory(), capsys.readouterr().err
    if how == "sticky" and changed != place:  # such as /tmp, where each entry is its owner's
        assert (found, said) == (str(place), "")
        return
    assert Path(found).parent.parent == tmp_path
    remedy = {0o777: f": chmod go-w {changed}", 0o775: f": chmod g-w {changed}", "sticky": f": chmod go-w {changed}"}
    assert f"{place} must be this user's alone (others may write to {changed}{remedy.get(how, '')})" in said
    assert (cache.directory(), capsys.readouterr().err) == (found, "")


def test_root_takes_its_own_home_in_place_of_the_callers(monkeypatch, tmp_path, capsys) -> None:
    """`./lab up` asks for root with `sudo -E`: no words are due each time."""
    for name in ("eve", "root"):
        (tmp_path / name).mkdir(mode=0o755)
    stranger_owns(monkeypatch, tmp_path / "eve")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "eve"))
    monkeypatch.setattr(cache, "_ROOTS", str(tmp_path / "root"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache.directory() == cache.directory() == str(tmp_path / "root" / "mrclab")
    assert capsys.readouterr().err == ""


def test_temporary_files_in_another_users_folder_are_no_replacement(monkeypatch, tmp_path) -> None:
    stranger_owns(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(cache, "_replacement", lambda temporary: temporary)
    assert cache.directory() == "/tmp/mrclab"


def test_a_link_to_a_cache_is_followed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its owner could lead it elsewhere after the look at what it names."""
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert cache.directory() == str(tmp_path / "real" / "mrclab")


def test_a_file_that_another_user_put_into_a_cache_is_not_in_use(monkeypatch, tmp_path) -> None:
    for name, mode in (("own", 0o755), ("shared", 0o775), ("theirs", 0o755)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    stranger_owns(monkeypatch, tmp_path / "theirs")
    assert [files.in_use(tmp_path / name) for name in ("own", "shared", "theirs", "none")] == [True, *[False] * 3]


def test_a_new_cache_is_its_users_alone_whatever_the_umask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    before = os.umask(0)
    try:
        files.make_cache(files.cache_directory())
    finally:
        os.umask(before)
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")
