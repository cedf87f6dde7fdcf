"""What the receiver did with a packet of a packet log: when it came, where it was placed, which answer spoke of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common import plain_file
from endpoint import acknowledges

Line = dict[str, Any]
ANSWERS = ("SACK", "NACK", "ACKNOWLEDGE")


class PacketAnswers:
    """Looks packets up in the logs of a view's runs, one a lane; None where nothing is recorded."""

    def __init__(self, runs: Sequence[Path | None]) -> None:
        self._runs = runs

    def __call__(self, lane: int, packet: int) -> dict[str, Any]:
        """LookupError when there is no log, or when the log has no such packet."""
        run = self._runs[lane]
        log = None if run is None else run / "packets.jsonl"
        if log is None or not log.exists():
            raise LookupError("this run has no packet log: run with --world simulated --record-packets START..END")
        return answer(log, packet)


def answer(log: Path, packet: int) -> dict[str, Any]:
    """`{received, placed, answered}`, each None where the log does not tell.

    `received`: `{t_ns, node, bytes, trimmed}`. `placed`: `{va, payload}`, None for a packet that came trimmed.
    `answered`: the first answer that speaks of the PSN, as it left the receiver: `{t_ns, op, qpn, ev, psn, sacked,
    cause_psn, came_ns}`; `came_ns` is when the sender had it, None when it was lost or the log ends before.
    """
    way = list(lines(log, f'"packet":{packet},'))
    if not way:
        raise LookupError(f"the packet log has no packet {packet}")
    last = way[-1]
    if last["fate"] != "received":
        return {"received": None, "placed": None, "answered": None}
    whole = not last["trimmed"]
    placed = {"va": last["va"], "payload": last["payload"]} if whole and last["va"] is not None else None
    received = {key: last[key] for key in ("t_ns", "node", "bytes", "trimmed")}
    return {"received": received, "placed": placed, "answered": answered(log, last)}


def answered(log: Path, packet: Line) -> Line | None:
    """The first answer to a packet that was received."""
    answers = [
        line
        for line in lines(log, f'"dst":"{packet["src"]}"', f'"src":"{packet["dst"]}"')
        if line["op"] in ANSWERS and line["node"] == packet["dst"] and line["t_ns"] >= packet["t_ns"]
    ]
    # An answer names the QP that it goes to, not the one that it comes from: an answer that this very packet has
    # caused tells which of the sender's QPs it belongs to.
    own = [one["qpn"] for one in answers if caused(one, packet)]
    for one in answers:
        if own and one["qpn"] != own[0]:
            continue
        speaks = one["psn"] == packet["psn"] if one["op"] == "NACK" else acknowledges(one, packet["psn"])
        if not speaks:
            continue
        way = [line for line in lines(log, f'"packet":{one["packet"]},') if line["fate"] == "received"]
        told = {key: one[key] for key in ("t_ns", "op", "qpn", "ev", "psn", "sacked", "cause_psn")}
        return {**told, "came_ns": way[0]["t_ns"] if way else None}
    return None


def caused(one: Line, packet: Line) -> bool:
    return bool(one["cause_psn"] == packet["psn"] and one["echo_ev"] == packet["ev"])


def lines(log: Path, *words: str) -> Iterator[Line]:
    """Lines of the log that hold all these words; those between the first line and the last."""
    wanted = [word.encode() for word in words]
    with plain_file.open_plain(log) as file:
        for part in plain_file.lines(file, log):
            if part.endswith(b"\n") and all(word in part for word in wanted):
                line: Line = plain_file.parse_json(part)
                if "packet" in line:
                    yield line
