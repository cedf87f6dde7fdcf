"""A run's packet log as instants and counters of a trace: trimmed, retransmitted and lost packets, queue depths."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.exporting.perfetto import Converter, is_node
from common import plain_file

ARRIVED = ("sent", "received")
"""Fates of packets that go on; every other fate is an instant with the fate's name."""
TOLD = ("packet", "src", "dst", "op", "qpn", "psn", "ev", "bytes", "queued_ns")
VERSION = 1


def packet_events(path: Path, converter: Converter) -> Iterator[str]:
    """The events of a packet log. ValueError names the line and what it must be."""
    with plain_file.open_plain(path) as file:
        for number, text in enumerate(plain_file.lines(file, path), 1):
            if not text.endswith(b"\n"):
                return  # the writer was killed in the middle of the line
            try:
                line = plain_file.parse_json(text)
                if number == 1:
                    check_head(line)
                elif "packet" in line:
                    yield from events_of(line, converter)
            except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
                raise ValueError(
                    f"{path}:{number}: must be a line of a packet log ({plain_file.text_fault(error)})"
                ) from None


def check_head(line: dict[str, Any]) -> None:
    """Raises ValueError unless this is the first line of a packet log of a known version."""
    if line.get("format") != "mrclab packet log" or line.get("version") != VERSION:
        raise ValueError(f"the first line must say format 'mrclab packet log', version {VERSION}")


def events_of(line: dict[str, Any], converter: Converter) -> list[str]:
    """The events of one packet at one place. A queue's counter is the depth that each packet found on arrival."""
    node, fate, t_ns = str(line["node"]), str(line["fate"]), int(line["t_ns"])
    port = line["port"] if line["port"] is not None else line["port_in"]
    track, told = f"packets, port {port}", {key: line[key] for key in TOLD}
    made: list[str] = []
    host = node == line["src"]
    if fate not in ARRIVED:
        made += converter.instant(node, track, fate.replace("_", " "), t_ns, "loss", told)
    elif fate == "sent" and host and line["retransmission"]:
        made += converter.instant(node, track, f"retransmission of PSN {line['psn']}", t_ns, "retransmission", told)
    elif fate == "sent" and line["trimmed"] and line["bytes_in"] is not None and line["bytes"] < line["bytes_in"]:
        made += converter.instant(node, track, f"trim of PSN {line['psn']}", t_ns, "trim", told)
    if fate == "sent" and not host and is_node(node):
        name = f"port {port} priority {line['priority']} depth on arrival"
        made += converter.counter(node, name, int(line["queued_ns"]), {"packets": int(line["depth"])})
    return made
