"""The prompt: every word that its help lists works or is refused by name, none ends it, and Tab completes our own."""

import atexit
import os
import pwd
import readline
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.prompt import prompt_commands
from topo.emulation.lab import Lab
from topo.emulation.network import REFUSED, FabricCLI, network
from topo.fault import VERBS, Fault, FaultError, make_fault
from topo.planfile import load_plan

pytestmark = [pytest.mark.root]
PLAN = load_plan("tiny", {"switch": "linux"})
# What a word of Mininet's needs behind it to do something; the others need nothing.
ARGUMENTS = {
    "gterm": "h0", "help": "nodes", "noecho": "h0 true", "pingall": "1", "px": "print(1)", "py": "h0.name",
    "sh": "true", "source": "/dev/null", "time": "nodes", "x": "h0 true", "xterm": "h0",
}  # fmt: skip
LEAVE = ("EOF", "exit", "quit")


@pytest.fixture
def nowhere(private_run: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FabricCLI]:
    """A prompt on a network of which nothing is there."""
    lab = Lab.__new__(Lab)
    lab.plan = PLAN
    monkeypatch.setattr(Lab, "faults", lambda _: [], raising=False)
    with open(os.devnull) as nobody:
        yield FabricCLI(network(PLAN), prompt_commands(lab), script=os.devnull, stdin=nobody)


def offered(prompt: FabricCLI, line: str) -> list[str]:
    """What Tab offers behind this line, as cmd.Cmd asks for it."""
    text = "" if line.endswith(" ") else line.split()[-1]
    if line.strip() == text:
        return prompt.completenames(text, line, 0, len(line))
    command, _, _ = prompt.parseline(line)
    complete = getattr(prompt, f"complete_{command}", prompt.completedefault)
    return list(complete(text, line, len(line) - len(text), len(line)))


def test_the_history_is_not_in_a_home_that_may_be_another_users(nowhere: FabricCLI, tmp_path, monkeypatch) -> None:
    """`sudo -E` keeps HOME: root wrote the file to which its owner had linked the history, with words of the owner."""
    registered: list[Callable[[], None]] = []
    written: list[str] = []
    (tmp_path / "victim").write_text("a secret\n")
    (tmp_path / ".mininet_history").symlink_to("victim")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(FabricCLI, "readlineInited", False)
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(readline, "write_history_file", written.append)
    nowhere.initReadline()
    for each in registered:
        each()
    assert written == [f"{pwd.getpwuid(0).pw_dir}/.mininet_history"]
    assert os.environ["HOME"] == str(tmp_path)


def test_fault_is_a_word_of_the_prompt_as_on_the_command_line(nowhere: FabricCLI, capsys, monkeypatch) -> None:
    given: list[tuple[object, ...]] = []

    def inject(lab: Lab, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        given.append((verb, target, value))
        return make_fault(PLAN, verb, target, value)

    monkeypatch.setattr(Lab, "inject", inject, raising=False)
    assert nowhere.verbs["fault"].run([]) == nowhere.verbs["fault"].run(["list"]) == "no fault in force"
    assert nowhere.verbs["fault"].run(["loss", "p0l0-p0s0", "5"]) == "loss p0l0-p0s0 5 percent"
    assert given == [("loss", "p0l0-p0s0", 5.0)]
    with pytest.raises(FaultError, match="did you mean link-down"):
        nowhere.verbs["fault"].run(["linkdown", "p0l0-p0s0"])
    assert offered(nowhere, "fault link-d") == ["link-down"]
    assert offered(nowhere, "fault link-down p0l0-") == ["p0l0-p0s0", "p0l0-p0s1"]


def test_tab_completes_verbs_targets_numbers_hosts_and_evs(nowhere: FabricCLI) -> None:
    assert offered(nowhere, "link-d") == ["link-down"]
    assert set(offered(nowhere, "switch-")) == {"switch-stop", "switch-crash", "switch-reboot"}
    assert offered(nowhere, "link-down p0l0-") == ["p0l0-p0s0", "p0l0-p0s1"]
    assert "h3.p1" in offered(nowhere, "port-down ")
    assert set(offered(nowhere, "drain p1")) == {"p1l0", "p1l1", "p1s0", "p1s1"}
    assert offered(nowhere, "steer h0 h3 o") == ["off"]
    assert "0x00010000" not in offered(nowhere, "steer h0 h3 ")
    assert "0x0001c001" in offered(nowhere, "steer h0 h3 0x0001")
    assert offered(nowhere, "undo ") == ["all"]
    for verb in VERBS:
        assert verb in offered(nowhere, verb[:4])


def test_what_is_refused_is_not_offered(nowhere: FabricCLI) -> None:
    listed = {name.removeprefix("do_") for name in nowhere.get_names() if name.startswith("do_")}
    assert not listed & set(REFUSED)
    assert {"nodes", "pingall", "py"} <= listed
    assert "iperf" not in offered(nowhere, "ip")


def test_every_word_of_the_help_works_or_is_refused_and_none_ends_the_prompt(tmp_path, nowhere: FabricCLI) -> None:
    listed = [name.removeprefix("do_") for name in nowhere.get_names() if name.startswith("do_")]
    tried = [name for name in listed if name not in LEAVE] + list(REFUSED) + ["x nobody", "py 1/0", "h0", "undo 7"]
    script = tmp_path / "words"
    script.write_text("".join(f"sh echo {one}:\n{one} {ARGUMENTS.get(one, '')}\n" for one in tried) + "sh echo end:\n")
    lab = Lab.up(PLAN)
    try:
        environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
        done = subprocess.run(
            [sys.executable, "-m", "cli", "shell", str(script)], capture_output=True, text=True, timeout=120,
            check=False, cwd=Path(__file__).parents[3], stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
    finally:
        lab.down()
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Traceback" not in said
    assert "end:" in done.stdout
    assert "Unknown command" not in said
    for word, instead in REFUSED.items():
        assert f"*** {word}: {instead}" in said
    assert "*** x: KeyError" in said
