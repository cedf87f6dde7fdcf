"""Captures: several links in one pcapng, as tshark reads it, and the dissector, loaded wherever the checkout is."""

import os
import shutil
import struct
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from scapy.utils import rdpcap

from cli import main as cli
from cli.capturing import PCAP_NANOSECONDS, CaptureError, PcapReader, interface, merged, packet, section
from cli.commands import capture
from cli.commands.capture import merge, opened
from cli.dissector import SCRIPT, tshark
from tests.helpers.pcap import HEADER

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")
Record = tuple[int, bytes]
RECORDS = st.lists(st.tuples(st.integers(0, 2**32 * 10**9 - 1), st.binary(max_size=80)), max_size=6)


@pytest.fixture
def wireshark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name on PATH: it writes its arguments and its input to a file."""
    (tmp_path / "wireshark").write_text(f'#!/bin/sh\nexec >"{tmp_path}/shown"\necho "$*"\ncat\n')
    (tmp_path / "wireshark").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "wireshark"


@pytest.mark.usefixtures("wireshark")
def test_one_command_opens_wireshark_on_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the dissector, as the user, and with every other word of the command."""
    monkeypatch.setattr(capture, "python", lambda *words: ["echo", *words])
    words = ["capture", "h0-p0l0", "--wireshark", "--count", "3"]
    monkeypatch.setattr(sys, "argv", ["mrclab", *words])
    assert cli.main(words) == 0
    shown = (tmp_path / "shown").read_text()
    assert shown.startswith("-k -i - -X lua_script:")
    assert shown.endswith("-m cli capture h0-p0l0 --count 3 --write -\n")
    assert cli.main([*words, "--decode"]) == 2


def test_wireshark_may_be_closed_while_the_capture_is_roots(wireshark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs by sudo, which an ordinary user cannot signal: kill(2) says EPERM. It ends at the closed pipe."""
    wireshark.write_text("#!/bin/sh\nexit 0\n")
    monkeypatch.setattr(capture, "python", lambda *_: ["yes"])

    def refused(_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(subprocess.Popen, "terminate", refused)
    assert cli.main(["capture", "h0-p0l0", "--wireshark"]) == 0


def pcap(records: list[Record]) -> bytes:
    head = struct.pack("<IHHiIII", PCAP_NANOSECONDS, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(
        struct.pack("<IIII", t_ns // 10**9, t_ns % 10**9, len(frame), len(frame)) + frame for t_ns, frame in records
    )


@given(RECORDS, st.lists(st.integers(1, 50), max_size=20))
def test_a_pcap_in_pieces_of_any_size_gives_every_record_once(records: list[Record], cuts: list[int]) -> None:
    data, reader, found = pcap(records), PcapReader(), []
    for size in [*cuts, len(data)]:
        found += list(reader.feed(data[:size]))
        data = data[size:]
    assert [(t_ns, frame) for t_ns, frame, _ in found] == records


def test_what_is_no_pcap_is_refused() -> None:
    with pytest.raises(CaptureError, match="no pcap"):
        list(PcapReader().feed(bytes(24)))


@needs_tshark
def test_tshark_reads_times_to_the_nanosecond_and_the_names_of_the_links(tmp_path: Path) -> None:
    frame = bytes(12) + b"\x86\xdd" + b"\x60" + bytes(39)
    file = tmp_path / "two.pcapng"
    file.write_bytes(
        section() + interface("h0-p0l0") + interface("p0l0-p0s1")
        + packet(0, 1_700_000_000_123_456_789, frame, len(frame)) + packet(1, 1_700_000_001_000_000_001, frame, 1500)
    )  # fmt: skip
    fields = ("frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len")
    words = ["tshark", "-r", str(file), "-T", "fields", *(word for name in fields for word in ("-e", name))]
    rows = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert rows[0].split("\t") == ["1700000000.123456789", "h0-p0l0", "54", "54"]
    assert rows[1].split("\t") == ["1700000001.000000001", "p0l0-p0s1", "1500", "54"]


def pretender(records: list[Record]) -> list[str]:
    """A command that says what tcpdump says and writes these records."""
    code = f"import sys; sys.stderr.write('tcpdump: listening on x\\n'); sys.stdout.buffer.write({pcap(records)!r})"
    return [sys.executable, "-c", code]


def test_frames_of_all_links_come_into_one_stream_and_a_count_ends_it() -> None:
    written: list[bytes] = []
    commands = {"a-b": pretender([(1, b"one"), (3, b"three")]), "b-c": pretender([(2, b"two")])}
    assert merged(commands, written.append) == 3
    assert sum(b"three" in data for data in written) == 1
    assert merged(commands, written.append, count=2) == 2
    with pytest.raises(CaptureError, match="no such device"):
        merged({"a-b": ["sh", "-c", "echo no such device >&2"]}, written.append)


def captured(name: str, records: list[Record]) -> int:
    """The file of `capture --write NAME` for these records of a link."""
    arguments = Namespace(write=name, count=None, seconds=None)
    with opened(arguments) as file:
        return merge({"a-b": pretender(records)}, file, arguments)


def test_a_single_link_comes_into_a_pcap_that_others_read(tmp_path: Path) -> None:
    records = [(1_700_000_000_123_456_789, bytes(60)), (1_700_000_001_000_000_001, bytes(range(64)))]
    assert captured(str(tmp_path / "a.pcap"), records) == 0
    found = rdpcap(str(tmp_path / "a.pcap"))
    assert [(str(one.time), bytes(one)) for one in found] == [
        ("1700000000.123456", bytes(60)), ("1700000001.000000", bytes(range(64))),
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["pcap", "pcapng"])
def test_a_full_disk_ends_a_capture_with_the_name_of_the_file(end: str, tmp_path: Path) -> None:
    """tcpdump wrote a single link by itself. Half a file was left, and the command had succeeded."""
    file = tmp_path / f"x.{end}"
    file.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as raised:
        captured(str(file), [(1, bytes(60))])
    assert raised.value.filename == str(file)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("h0-p0l0", "p0l0-p0s0"), "several links: --write FILE.pcapng, --write - or --decode"),
        (("h0-p0l0", "--decode", "--write", "x"), "--decode prints and --write writes"),
        (("h0-p0l0", "h0-p0l0", "--write", "-"), "each link once"),
    ],
)
def test_a_capture_that_cannot_be_is_refused_before_anybody_is_asked(words, said, refused, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert said in refused("capture", *words)


ANOTHER_USER = 1000


def knows_mrc(words: list[str], tmp_path: Path) -> bool:
    """tshark refuses to print a field that no protocol has."""
    capture = tmp_path / "empty.pcap"
    capture.write_bytes(HEADER)
    command = [*words, "-r", str(capture), "-T", "fields", "-e", "mrc.opcode"]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


@needs_tshark
def test_the_dissector_is_loaded(tmp_path: Path) -> None:
    assert not knows_mrc(["tshark"], tmp_path)
    with tshark() as words:
        assert knows_mrc(words, tmp_path)


@needs_tshark
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


@needs_tshark
def test_no_file_of_the_current_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's FIFO of this name held root for ever."""
    os.mkfifo(tmp_path / "IOR.txt")
    monkeypatch.chdir(tmp_path)
    with tshark() as words:
        assert knows_mrc(words, tmp_path)


@needs_tshark
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
