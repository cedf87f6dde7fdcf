"""`./lab launch`: which hosts are which ranks, output by lines, the worst status, and nothing that outlives it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.host_names import parse_hosts
from cli.ranks import LINE_BYTES_MAX, RankProcess, run
from tests.helpers.owner import living
from tests.helpers.waiting import eventually
from topo.planfile import load_plan

TWO = [RankProcess(f"h{number}", [], {"RANK": str(number)}) for number in range(2)]


def joined(script: str) -> tuple[int, list[str]]:
    lines: list[bytes] = []
    status = run(TWO, ["sh", "-c", script], lines.append)
    return status, [line.decode() for line in lines]


def test_lines_have_their_rank_in_front_also_the_last_without_an_end() -> None:
    status, lines = joined("echo one; printf two >&2")
    assert status == 0
    assert sorted(lines) == ["h0: one\n", "h0: two\n", "h1: one\n", "h1: two\n"]


def test_a_rank_that_fails_ends_the_others_and_its_status_is_the_answer() -> None:
    assert joined("[ $RANK = 1 ] && exit 7; exec sleep 1000")[0] == 7
    assert joined("[ $RANK = 1 ] && kill -9 $$; exec sleep 1000")[0] == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("kill -SEGV $$", "h1: rank 1 was killed by signal 11 (Segmentation fault); the other ranks were ended\n"),
        ("kill -40 $$", "h1: rank 1 was killed by signal 40 (Real-time signal 6); the other ranks were ended\n"),
        ("exit 3", "h1: rank 1 ended with status 3; the other ranks were ended\n"),
    ],
)
def test_the_last_line_names_host_rank_and_end_of_a_rank_that_failed(ending: str, said: str) -> None:
    _, lines = joined(f"[ $RANK = 0 ] && exec sleep 1000; echo last words; {ending}")
    assert lines == ["h1: last words\n", said]


def test_a_rank_that_hears_no_sigterm_is_killed() -> None:
    assert joined("trap '' TERM; [ $RANK = 1 ] && exit 3; while :; do sleep 1; done")[0] == 3


def test_a_line_without_end_costs_no_memory() -> None:
    status, lines = joined("head -c 300000 /dev/zero | tr '\\0' x")
    assert status == 0
    assert max(map(len, lines)) <= 2 * LINE_BYTES_MAX + 10
    assert sum(line.count("x") for line in lines) == 600_000


def test_no_rank_outlives_a_killed_launcher(tmp_path: Path) -> None:
    script = (
        "from cli.ranks import RankProcess, run\n"
        "run([RankProcess('h0', [], {})], ['sh', '-c', 'echo $$ > %s; exec sleep 1000'], lambda line: None)\n"
    ) % (tmp_path / "pid")
    launcher = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", "the rank runs")
    group = int((tmp_path / "pid").read_text())
    assert living(os.getpgid(group)) == [group]
    launcher.kill()
    launcher.wait()
    eventually(lambda: living(group) == [], "the rank is gone")


PLAN = load_plan("lab")


@pytest.mark.parametrize(
    ("text", "names"),
    [("h0..h3", "h0 h1 h2 h3"), ("h2,h0", "h2 h0"), ("h5..h5", "h5"), ("h0..h1,h7", "h0 h1 h7"), ("h3", "h3")],
)
def test_hosts_in_the_order_of_their_ranks(text: str, names: str) -> None:
    assert [host.name for host in parse_hosts(PLAN, text)] == names.split()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be hosts such as h0..h7"),
        ("h0..", "must be hosts such as h0..h7"),
        ("h3..h1", "a range must go upwards"),
        ("h0..h2,h1", "must name each host once .got h1"),
        ("h0..h99", "h99"),
        ("p0l0", "must be hosts such as"),
        ("h0;h1", "must be hosts such as"),
    ],
)
def test_a_wrong_choice_is_told_by_its_part(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_hosts(PLAN, text)
