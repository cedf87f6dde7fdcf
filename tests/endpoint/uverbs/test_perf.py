"""perftest's tests over uverbs of two NICs in memory: both ends, their rows, and what they refuse."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.rig.uverbs_rig import End, rig
from mrclab.perf import write_bw, write_lat
from mrclab.perf.exchange import Exchange, PeerGoneError
from mrclab.perf.options import parse
from tests.helpers.joined_ends import joined
from tests.helpers.waiting import at_once


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def both(main: Callable[[list[str]], int], *words: str, client: tuple[str, ...] = ()) -> list[int]:
    """Exit statuses of server and client."""
    statuses = [-1, -1]
    with rig() as made:
        common = ["-p", str(free_port()), "--out_json"]

        def run(number: int, arguments: list[str]) -> None:
            statuses[number] = main([*arguments, *common, *words, "-d", made.names[number]])

        at_once([lambda: run(0, []), lambda: run(1, ["127.0.0.1", *client])])
    return statuses


def rows(capsys) -> list[dict[str, float]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_bandwidth_has_perftests_columns_and_both_ends_say_the_same(capsys):
    assert both(write_bw.main, "-s", "20000", "-n", "200", "-q", "3", "-t", "16", "--report_gbits") == [0, 0]
    server, client = rows(capsys)
    assert server["#iterations"] == client["#iterations"] == 600
    assert list(client) == ["#bytes", "#iterations", "BW peak[Gb/sec]", "BW average[Gb/sec]", "MsgRate[Mpps]"]
    rate, average = client["MsgRate[Mpps]"], client["BW average[Gb/sec]"]
    assert rate * 1e6 * 20000 * 8 / 1e9 == pytest.approx(average, rel=0.05)  # six decimals of either are printed
    assert 0 < average < 4
    assert server["BW average[Gb/sec]"] == average


def test_bandwidth_both_ways_for_a_time_adds_both(capsys):
    assert both(write_bw.main, "-s", "4096", "-D", "1", "-b", "-l", "4", "-t", "8") == [0, 0]
    server, client = rows(capsys)
    assert server == client
    assert client["#iterations"] > 10
    assert client["BW peak[MB/sec]"] == 0  # as in perftest, which has no peak of a duration


def test_latency_has_perftests_columns_in_order_of_size_of_the_percentiles(capsys):
    assert both(write_lat.main, "-n", "300", "-s", "9000") == [0, 0]
    row = rows(capsys)[1]
    assert row["#iterations"] == 300  # more than the receives that are posted at first
    names = ["t_min[usec]", "t_typical[usec]", "99% percentile[usec]", "99.9% percentile[usec]", "t_max[usec]"]
    figures = [row[name] for name in names]
    assert figures == sorted(figures)
    assert figures[0] > 0


def test_what_the_ends_of_a_latency_test_tell_each_other_does_not_grow_with_its_iterations(capsys, monkeypatch):
    """A line has an upper limit, and a test may have 2^31 iterations."""
    told = []
    swap = Exchange.swap

    def telling(exchange: Exchange, mine: object) -> object:
        told.append(len(json.dumps(mine)))
        return swap(exchange, mine)

    monkeypatch.setattr(Exchange, "swap", telling)
    assert both(write_lat.main, "-n", "300", "-s", "100") == [0, 0]
    assert max(told) < 1000
    server, client = rows(capsys)
    assert server == client


@contextmanager
def peer_of(exchanges: list[Exchange]) -> Iterator[socket.socket]:
    """The other end of a new exchange, which is appended."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        exchanges.append(Exchange("127.0.0.1", listener.getsockname()[1]))
        peer, _ = listener.accept()
    with exchanges[-1], peer:
        yield peer


def test_an_end_whose_peer_was_a_step_ahead_and_was_killed_hears_so():
    exchanges: list[Exchange] = []
    said: list[str] = []

    def wait(end: End) -> None:
        try:
            exchanges[0].wait(end.context, end.cq)
        except PeerGoneError as error:
            said.append(str(error))

    with rig() as made, peer_of(exchanges) as peer:
        end = End(made.names[0])
        peer.sendall(b'{"messages": 1}\n')
        peer.close()
        waiting = threading.Thread(target=wait, args=(end,), daemon=True)
        waiting.start()
        waiting.join(10)
        assert said == ["the other end has ended the test"]
        end.context.close()


def test_what_a_peer_that_is_a_step_ahead_says_is_kept_for_that_step():
    exchanges: list[Exchange] = []
    with rig() as made, peer_of(exchanges) as peer:
        ends = joined(made)
        peer.sendall(b'{"messages": 1}\n')
        ends[0].write(ends[1], 1, 0, 20_000)
        assert [each.wr_id for each in exchanges[0].wait(ends[0].context, ends[0].cq)] == [1]
        assert exchanges[0].swap({}) == {"messages": 1}
        for one in ends:
            one.context.close()


def test_ends_that_were_started_differently_say_so(capsys):
    assert both(write_lat.main, client=("-s", "8")) == [1, 1]
    assert "the other end was started with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-R"], "no RDMA-CM"), (["-m"], "the plan's"), (["-s", "0"], "--size is 0; it must be from 1"),
        (["-c", "UD"], "invalid choice: 'UD'"), (["--nonsense"], "--nonsense"),
    ],
)  # fmt: skip
def test_what_perftest_has_and_this_has_not_is_refused_with_the_reason(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse("mrc_write_bw", "Bandwidth", words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_outside_of_a_host_the_error_says_so_and_nothing_listens(capsys):
    assert write_bw.main(["-d", "h4096"]) == 1
    assert "no NIC of h4096 in this network namespace" in capsys.readouterr().err
