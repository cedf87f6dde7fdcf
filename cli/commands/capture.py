"""`mrclab capture`: packets of links of the running lab, printed, decoded, or written as pcap or pcapng."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from cli.command_table import add
from cli.dissector import SCRIPT
from cli.options import check_seconds
from cli.ownership import handing_over
from cli.root import need_root
from common import files
from common.interpreter import python
from common.terminal.counted import counted
from common.terminal.standard_streams import write_error
from running.view import RemoteLab, find, near_end, packets_json
from topo.emulation import Lab, labname
from topo.show import duration

# MRC's UDP checksum is zero, as RFC 6936 allows for tunnels; that is no error.
PREFERENCES = ("-o", "udp.ignore_ipv6_zero_checksum:TRUE", "-o", "udp.check_checksum:FALSE")

VIRTUAL_S = 0.001
COUNT_MAX = 2**31 - 1  # what tcpdump -c takes


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    capture = add(subparsers, "capture", capture_command, __file__)
    capture.add_argument("links", nargs="+", metavar="LINK", help="two neighbours, such as p1l0-p1s2 or h0-p0l0")
    capture.add_argument("--write", metavar="FILE", help="write pcap or pcapng instead of printing; - is the output")
    capture.add_argument("--decode", action="store_true", help="print tshark's decoding, MRC included")
    capture.add_argument("--wireshark", action="store_true", help="open Wireshark, which shows them as they come")
    capture.add_argument("--count", type=int, metavar="N", help="stop after N packets")
    capture.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds")
    capture.add_argument("--filter", default="", metavar="EXPRESSION", help="a tcpdump filter expression")
    labname.add_option(capture)


def capture_command(arguments: argparse.Namespace) -> int:
    if arguments.wireshark:
        return in_wireshark(arguments)
    lab = find()
    check(arguments, virtual=lab is not None)
    if lab is not None:
        return in_virtual_time(lab, arguments)
    need_root("capture listens on an interface")
    with handing_over(*[Path(name) for name in (arguments.write,) if name not in (None, "-")]):
        return captured(arguments)


def in_wireshark(arguments: argparse.Namespace) -> int:
    """Wireshark behind a pipe. It runs as the user, also where the capture needs root, for whom it loads no scripts."""
    if shutil.which("wireshark") is None:
        raise RuntimeError("wireshark is not installed: apt-get install wireshark")
    if arguments.write is not None or arguments.decode:
        raise ValueError("--wireshark must be without --write and --decode")
    words = [*python("-m", "cli"), *(word for word in sys.argv[1:] if word != "--wireshark"), "--write", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as source:
        shown = ("wireshark", "-k", "-i", "-", "-X", f"lua_script:{SCRIPT}", *PREFERENCES)
        status = subprocess.run(shown, stdin=source.stdout, check=False).returncode
        with contextlib.suppress(PermissionError):  # sudo, for an ordinary user: the capture ends at the closed pipe
            source.terminate()
    return status


def captured(arguments: argparse.Namespace) -> int:
    """Print the packets, or write them to a file, until enough were captured or Ctrl-C."""
    lab = Lab.attach()
    ends = {link: near_end(lab.plan, link) for link in arguments.links}
    entering = {link: ["nsenter", f"--net={lab.netns(ref.node)}"] for link, ref in ends.items()}
    if arguments.write is None and not arguments.decode:
        (link,) = ends
        return alone([*entering[link], *command_line(ends[link].interface, arguments)], arguments.seconds)
    words = {link: [*entering[link], *streaming(ends[link].interface, arguments)] for link in ends}
    with opened(arguments) as file:
        return merge(words, file, arguments)


def in_virtual_time(lab: RemoteLab, arguments: argparse.Namespace) -> int:
    """Let lab time pass; print the packets that have crossed meanwhile, or write them as pcapng."""
    from cli.capturing import interface, packet, section

    ends = [near_end(lab.plan, link) for link in arguments.links]
    seconds = arguments.seconds or VIRTUAL_S
    crossed = lab.captured(ends, seconds)
    if not any(crossed):
        links, time = ", ".join(arguments.links), duration(round(seconds * 1e9))
        write_error(f"mrclab: no packet crossed {links} in {time} of lab time: --seconds S looks for longer")
    if arguments.write is None:
        for link, packets in zip(arguments.links, crossed, strict=True):
            for shown in packets_json(lab.plan, packets[: arguments.count]):
                said = " ".join(f"{key}={value}" for key, value in shown.items() if key not in ("t_ns", "out", "head"))
                sys.stdout.write(f"{shown['t_ns'] / 1e9:.9f}  {link} {'out' if shown['out'] else 'in'}  {said}\n")
        return 0
    frames = sorted((t_ns, n, head, size) for n, packets in enumerate(crossed) for t_ns, _, size, head in packets)
    with handing_over(*[Path(arguments.write)] * (arguments.write != "-")), opened(arguments) as file:
        file.write(section() + b"".join(interface(link) for link in arguments.links))
        for t_ns, number, head, size in frames[: arguments.count]:
            file.write(packet(number, t_ns, head, size))
    return 0


def check(arguments: argparse.Namespace, *, virtual: bool) -> None:
    """Reject impossible options before root is asked for."""
    check_seconds("--seconds", arguments.seconds)
    if arguments.count is not None and not 1 <= arguments.count <= COUNT_MAX:
        raise ValueError(f"--count must be between 1 and {COUNT_MAX} (got {arguments.count})")
    if virtual and (arguments.decode or arguments.filter):
        raise ValueError("in virtual time, --decode and --filter are Wireshark's: --write FILE.pcapng")
    if not virtual and shutil.which("tcpdump") is None:
        raise RuntimeError("tcpdump is not installed: apt-get install tcpdump")
    if arguments.decode and shutil.which("tshark") is None:
        raise RuntimeError("tshark is not installed: apt-get install tshark; or --write - into a Wireshark elsewhere")
    if arguments.decode and arguments.write is not None:
        raise ValueError("--decode prints and --write writes: one of them")
    if len(arguments.links) > 1 and not (virtual or arguments.write or arguments.decode):
        raise ValueError("several links: --write FILE.pcapng, --write - or --decode")
    if arguments.write == "-" and sys.stdout.isatty():
        raise ValueError("--write - must go to a pipe, not to a terminal: | wireshark -k -i -")
    if arguments.write not in (None, "-"):
        check_writable(Path(arguments.write))
    if len(set(arguments.links)) != len(arguments.links):
        raise ValueError(f"each link once, not {' '.join(arguments.links)}")


def check_writable(file: Path) -> None:
    """ValueError for a file that cannot be: tcpdump would say so only once the capture has begun."""
    with contextlib.suppress(PermissionError):  # root, who is asked for next, may look there
        if file.is_dir():
            raise ValueError(f"--write must be a file (got the folder {file})")
        if not file.parent.is_dir():
            raise ValueError(f"--write must be in a folder that exists (got {file})")


def command_line(interface: str, arguments: argparse.Namespace) -> list[str]:
    """tcpdump's words for what it prints; -K: see PREFERENCES."""
    words = ["tcpdump", "-n", "-i", interface, "-Z", "root", "-e", "-v", "-K"]
    if arguments.count is not None:
        words += ["-c", str(arguments.count)]
    return [*words, *arguments.filter.split()]


def streaming(interface: str, arguments: argparse.Namespace) -> list[str]:
    """tcpdump's words for a pcap with nanoseconds on its output, packet by packet."""
    words = ["tcpdump", "-n", "-i", interface, "-Z", "root", "--time-stamp-precision=nano", "-U", "-w", "-"]
    return [*words, *arguments.filter.split()]


def alone(words: Sequence[str], seconds: float | None) -> int:
    """One tcpdump, which prints by itself."""
    process = subprocess.Popen(words)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return 0
    finally:
        # tcpdump prints what it still holds when it is told to stop.
        process.terminate()
        process.wait()
        sys.stdout.flush()


def merge(words: dict[str, list[str]], file: IO[bytes], arguments: argparse.Namespace) -> int:
    """All links into one stream, until enough was captured or Ctrl-C."""
    from cli.capturing import merged

    pieces = 0  # the head, then packet by packet

    def write(data: bytes) -> None:
        nonlocal pieces
        file.write(data)
        file.flush()
        pieces += 1

    def listening() -> None:
        sys.stderr.write(f"listening on {', '.join(words)}\n")
        sys.stderr.flush()

    pcap = len(words) == 1 and arguments.write not in (None, "-") and not arguments.write.endswith(".pcapng")
    with contextlib.suppress(KeyboardInterrupt):
        merged(words, write, count=arguments.count, seconds=arguments.seconds, listening=listening, pcap=pcap)
    sys.stderr.write(f"{counted(max(0, pieces - 1), 'packet')} of {counted(len(words), 'link')}\n")
    return 0


@contextlib.contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[IO[bytes]]:
    """Where the stream goes: a file, the output, or tshark's input."""
    if arguments.write == "-":
        yield sys.stdout.buffer
    elif arguments.write is not None:
        with files.named(arguments.write), os.fdopen(files.open_output(Path(arguments.write)), "wb") as file:
            yield file
    else:
        from cli.dissector import tshark

        with tshark() as words:
            # Ctrl-C ends the capture; tshark then decodes what it still has.
            reader = subprocess.Popen(
                [*words, "-l", *PREFERENCES, "-r", "-"],
                stdin=subprocess.PIPE,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
            )
            assert reader.stdin is not None
            try:
                yield reader.stdin
            finally:
                reader.stdin.close()
                reader.wait()
