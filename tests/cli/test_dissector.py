"""The dissector is loaded whoever runs tshark, wherever the checkout is."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.dissector import SCRIPT, tshark
from tests.helpers import pcap

ANOTHER_USER = 1000

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


def knows_mrc(words: list[str], tmp_path: Path) -> bool:
    """tshark refuses to print a field that no protocol has."""
    capture = tmp_path / "empty.pcap"
    capture.write_bytes(pcap.HEADER)
    command = [*words, "-r", str(capture), "-T", "fields", "-e", "mrc.opcode"]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def test_the_dissector_is_loaded(tmp_path: Path) -> None:
    assert not knows_mrc(["tshark"], tmp_path)
    with tshark() as words:
        assert knows_mrc(words, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives a folder to another user")
def test_root_loads_it_where_only_its_owner_may_enter_the_checkout(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    script = Path(shutil.copy(SCRIPT, home))
    os.chown(script, ANOTHER_USER, ANOTHER_USER)
    os.chown(home, ANOTHER_USER, ANOTHER_USER)
    home.chmod(0o700)
    with tshark(script) as words:
        assert knows_mrc(words, tmp_path)
    assert not Path(words[-1].removeprefix("lua_script:")).exists()  # the copy


def test_no_file_of_the_current_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's FIFO of this name held root for ever."""
    os.mkfifo(tmp_path / "IOR.txt")
    monkeypatch.chdir(tmp_path)
    with tshark() as words:
        assert knows_mrc(words, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others' scripts do no harm to an ordinary user")
def test_root_loads_no_script_of_the_home_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sudo -E` keeps HOME, and in a user namespace tshark takes itself for an ordinary user's."""
    ran = tmp_path / "ran"
    for place in (".config/wireshark/init.lua", ".local/lib/wireshark/plugins/own.lua"):
        script = tmp_path / place
        script.parent.mkdir(parents=True)
        script.write_text(f'io.open("{ran}", "w"):close()\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    with tshark() as words:
        assert knows_mrc(words, tmp_path)
    assert not ran.exists()
