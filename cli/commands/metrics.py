"""`mrclab metrics`: the counters of the running lab for Prometheus, on a loopback port while the command runs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading

from cli.command_table import add
from cli.root import need_root
from common.interpreter import python
from running.view import LabView, attached, find
from topo.emulation import LabError, labname

PORT = 9464
EVERY_S = 5.0
END_S = 5.0


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    metrics = add(subparsers, "metrics", metrics_command, __file__)
    metrics.add_argument("--port", type=int, default=PORT, help=f"of 127.0.0.1; 0: any free one ({PORT})")
    metrics.add_argument(
        "--every", type=float, default=EVERY_S, metavar="S", help=f"read every S seconds ({EVERY_S:g})"
    )
    metrics.add_argument("--once", action="store_true", help="print the text instead")
    labname.add_option(metrics)


def metrics_command(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.port <= 0xFFFF:
        raise ValueError(f"--port must be between 0 and 65535 (got {arguments.port})")
    if not 1 <= arguments.every <= 3600:
        raise ValueError(f"--every must be between 1 and 3600 s (got {arguments.every:.15g})")
    if find() is None:
        need_root("metrics asks agents, which run as root")
    lab = attached()
    if arguments.once:
        sys.stdout.write(exposition(lab))
        return 0
    return serve(lab, arguments.port, arguments.every)


def exposition(lab: LabView) -> str:
    """The text of a lab that is up. LabError when its switches do not answer."""
    import controller
    from cli.metrics.collecting import collect
    from cli.metrics.exposition import text
    from controller import drop_causes
    from running.view import chosen_ports, programs, rows_of

    chosen = chosen_ports(lab.plan, None)
    program = programs(lab, chosen)
    pipelines = controller.compiled_pipelines() if program else {}
    causes = {
        name: None if cells is None else drop_causes(pipelines[lab.plan.switch_node(name).program].p4info)
        for name, cells in program.items()
    }
    return text(collect(lab, chosen, rows_of(lab, chosen, program)["ports"], causes))


def serve(lab: LabView, port: int, every_s: float) -> int:
    """Serve until the lab is down or the command is interrupted. ValueError: the port cannot be had."""
    from common.linux.rights import ordinary_user

    words = [str(number) for number in (port, *(ordinary_user() or ()))]
    server = subprocess.Popen(
        python("-m", "cli.metrics.serving", *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for this process, which then ends the server
    )
    assert server.stdout is not None
    pause = threading.Event()
    try:
        said = server.stdout.readline().strip()
        if not said.startswith("ready "):
            raise ValueError(f"--port must be free on 127.0.0.1 (port {port}: {said or 'the server ended'})")
        write(server, exposition(lab))
        sys.stdout.write(f"metrics at http://127.0.0.1:{said.removeprefix('ready ')}/metrics until Ctrl-C\n")
        sys.stdout.flush()
        while not pause.wait(every_s) and lab.is_up():
            write(server, exposition(lab))
        sys.stdout.write("the lab is down\n")
    except BrokenPipeError:
        raise LabError("the process that serves metrics has ended; ./lab metrics starts another") from None
    except (RuntimeError, OSError):
        if lab.is_up(settled=True):
            raise
        sys.stdout.write("the lab is down\n")
    finally:
        end(server)
    return 0


def write(server: subprocess.Popen[str], text: str) -> None:
    """Hand the server a new text. BrokenPipeError: it has ended."""
    assert server.stdin is not None
    server.stdin.write(json.dumps(text) + "\n")
    server.stdin.flush()


def end(server: subprocess.Popen[str]) -> None:
    """End the server: its standard input ends."""
    try:
        server.communicate(timeout=END_S)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        server.kill()
        server.wait()
