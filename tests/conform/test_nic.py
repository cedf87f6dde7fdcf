"""A NIC under test: the lab's own as a process, right and with planted faults, and devices that do not answer."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli.main import main
from conform import capture, rule
from conform.nic import hunting, run
from conform.nic.control import ControlError, Lines, channel
from conform.nic.device_file import Control, DeviceFileError, parse
from conform.nic.frames import Builder
from conform.nic.link import InterfaceLink, SocketLink
from conform.nic.session import ReplayError
from tests.conform.mutant_nic import MUTANTS

RULES = {one.id: one for one in rule.load(run.ROLES)}
PROGRAM = Path(__file__).with_name("mutant_nic.py")


@pytest.fixture(scope="module")
def tester(tmp_path_factory: pytest.TempPathFactory) -> Iterator[run.Tester]:
    """The lab's NIC as a process; the request `mutant` plants a fault."""
    folder = tmp_path_factory.mktemp("nic")
    file, wire = folder / "nic.toml", folder / "wire"
    words = [sys.executable, str(PROGRAM), str(file), str(wire)]
    file.write_text(f"[control]\ncommand = {words}\n")
    link = SocketLink(wire)
    control = channel(parse(file.read_text()).control)
    made = run.Tester(parse(file.read_text()), link, control)
    made.greet()
    yield made
    control.close()
    link.close()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_named_by_its_rule(name: str, tester: run.Tester) -> None:
    named = RULES[MUTANTS[name][1]]
    assert tester.control.ask(f"mutant name={name}") == "ok"
    found, _ = tester.run(named)
    tester.control.ask("mutant name=")
    assert found.outcome == "fail", found
    assert tester.run(named)[0].outcome == "pass"


def test_a_fault_that_comes_and_goes_is_told_with_its_count_and_its_capture(tester: run.Tester) -> None:
    """Tries 1, 3, 4, 6 and 7 of eight meet the fault: the second passes, so the failure does not repeat at once."""
    named = RULES["WIR-003"]
    assert tester.control.ask("mutant name=now-and-then-wrong-icrc") == "ok"
    found, captures = tester.run(named)
    tester.control.ask("mutant name=")
    assert (found.outcome, found.text.partition(":")[0]) == ("intermittent", "failed in 5 of 8 tries, seed 0")
    assert run.again(named, tester.about, 0, list(captures.values())).outcome == "fail"


def test_the_basic_group_passes_and_its_captures_say_so_again(tester: run.Tester) -> None:
    for one in rule.chosen(RULES.values(), "basic"):
        result, captures = tester.run(one)
        assert result.outcome == "pass", result
        again = run.again(one, tester.about, 0, list(captures.values()))
        assert (again.outcome, again.text) == (result.outcome, result.text)


@pytest.mark.parametrize("seed", range(1, 21))
def test_the_unmodified_nic_passes_every_rule(seed: int, tester: run.Tester) -> None:
    seeded = replace(tester, seed=seed)
    results = [seeded.run(one)[0] for one in rule.chosen(RULES.values(), "all")]
    assert [one for one in results if one.outcome not in ("pass", "device's choice")] == []


def test_an_address_in_front_of_memory_at_0_is_at_the_end_of_all_addresses() -> None:
    """RETH has 64 bits of address, 12 bytes of BTH and 4 of METH before it."""
    body = Builder(parse("[control]\ncommand = 'x'\n"), 0x100, va=0).write("WRITE_ONLY", 0, 0, b"abcd", 4, va=-256)
    assert body[16:24] == b"\xff" * 7 + b"\x00"


def test_a_changed_capture_is_not_judged(tester: run.Tester) -> None:
    one = RULES["RSP-001"]
    _, captures = tester.run(one)
    events = capture.unpacked(next(iter(captures.values())))
    without = [event for event in events if not (event.inward and event.note == "packet 1 of 3")]
    with pytest.raises(ReplayError):
        run.again(one, tester.about, 0, [capture.packed(without, ["port1", "port2"])])


def test_a_hunt_shrinks_what_breaks_a_rule(tester: run.Tester) -> None:
    """A bitmap that is one off is wrong as soon as a packet is missing."""
    assert tester.control.ask("mutant name=bitmap-one-off") == "ok"
    hunt = run.Hunt(replace(tester, seed=3), [RULES["HNT-001"]])
    ((found, captures),) = hunt.go(20)
    tester.control.ask("mutant name=")
    assert found.outcome == "fail"
    number, text = hunt.schedules["HNT-001"]
    schedule = hunting.read(text)
    assert len(schedule.inward) <= 2
    assert schedule.outward == ()
    (data,) = captures.values()
    again = run.hunted_again(RULES["HNT-001"], tester.about, 3, number, text, data)
    assert again.outcome == "fail"


def test_a_hunt_finds_nothing_in_the_unmodified_nic(tester: run.Tester) -> None:
    rules = rule.chosen(RULES.values(), "hunt")
    hunt = run.Hunt(replace(tester, seed=4), rules)
    assert [one.outcome for one, _ in hunt.go(3)] == ["pass"] * len(rules)
    assert hunt.trials > 3


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_model_in_c_keeps_the_basic_group(tmp_path: Path) -> None:
    program, wire = tmp_path / "model", tmp_path / "wire"
    source = Path(__file__).parents[2] / "packages" / "conform" / "examples" / "model_device.c"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True, timeout=60)
    link = SocketLink(wire)
    control = channel(Control((str(program), str(wire))))
    try:
        model = run.Tester(parse('[control]\nunix = "/none"\n'), link, control)
        model.greet()
        results = [model.run(one)[0] for one in rule.chosen(RULES.values(), "basic")]
        assert [one for one in results if one.outcome != "pass"] == []
    finally:
        control.close()
        link.close()


class Odd:
    """A link to a device that answers nothing, nonsense without end, or too late."""

    def __init__(self, sends: bytes | None) -> None:
        self.sends = sends

    def send(self, port: int, data: bytes) -> None:
        pass

    def receive(self, wait_s: float) -> tuple[int, bytes] | None:
        return (1, self.sends) if self.sends is not None else None

    def files(self) -> list[socket.socket]:
        return []

    def pump(self) -> None:
        pass

    def close(self) -> None:
        pass


class Yes:
    """A control channel that says yes to everything."""

    def ask(self, line: str, link: object = None) -> str:
        return "ok qpn=256 va=4096 rkey=7 bytes=65536 done= hex="

    def close(self) -> None:
        pass


@pytest.mark.parametrize("sends", [None, b"\x02" * 60], ids=["nothing", "nonsense"])
def test_a_device_that_says_nothing_or_nonsense_has_a_clear_result(sends: bytes | None) -> None:
    about = parse('answer_ms = 5\n[control]\nunix = "/none"\n')
    tester = run.Tester(about, Odd(sends), Yes())
    tester.greet()
    tried = ["WIR-001", "RSP-001", "RSP-002", "REQ-001", "REQ-002"]
    results = [tester.run(RULES[name])[0] for name in tried]
    assert all(one.outcome in ("fail", "not reachable") for one in results)
    if sends is None:
        assert results[-1].text.startswith("no frame of the device has come")
    else:
        assert any("cannot be read" in one.text for one in results)


def test_a_control_channel_that_says_nothing_ends_the_run(tmp_path: Path) -> None:
    words = Control((sys.executable, "-c", "import time; time.sleep(9)"), answer_s=0.1)
    control = channel(words)
    with pytest.raises(ControlError, match=r"has not answered 'hello' within 0.1 s"):
        control.ask("hello version=1")
    assert isinstance(control, Lines)
    control.close()
    with pytest.raises(ControlError, match="cannot be started"):
        channel(Control((str(tmp_path / "none"),)))
    with pytest.raises(ControlError, match="no device listens"):
        channel(Control(unix=str(tmp_path / "none")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have [control]"),
        ('[control]\nunix="a"\ntcp="b:1"', "exactly one of command, unix, tcp"),
        ('pmtu = 9\n[control]\nunix="a"', "pmtu must be between 256 and 4096 (got 9)"),
        ('pmtu = "x"\n[control]\nunix="a"', "pmtu of the file must be int (got 'x')"),
        ('colour = 1\n[control]\nunix="a"', "the file has no key colour"),
        ('[control]\nunix="a"\n[evs]\n7 = 3', "evs must be of ports 1 to 2"),
        ('encapsulation = "vxlan"\n[control]\nunix="a"', "must be srv6 or none (got 'vxlan')"),
        ("nothing", "must be TOML"),
    ],
)
def test_a_wrong_device_file_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(DeviceFileError) as error:
        parse(text)
    assert said in str(error.value)


def test_an_interface_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"no interface 'nope' is here; there are .*lo"):
        InterfaceLink(["lo", "nope"])


def test_a_device_that_connects_elsewhere_is_told_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, wire = tmp_path / "nic.toml", tmp_path / "wire"
    file.write_text(f"[control]\ncommand = {[sys.executable, str(PROGRAM), str(file), str(tmp_path / 'other')]}\n")
    assert (
        main(["conform", "nic", "--device", str(file), "--socket", str(wire), "--output", str(tmp_path / "out")]) == 2
    )
    assert capsys.readouterr().out.endswith(f"; it must connect to {wire}\n")
