"""`mrclab view`: the lab in a browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.command_table import add
from cli.options import add_runs
from cli.ownership import hand_over
from cli.root import need_root
from common.scratch import Scratch
from common.terminal.printable import path_line, printable
from common.terminal.standard_streams import write_error
from topo.emulation import labname

if TYPE_CHECKING:
    from topo.emulation import Lab

WHY_NOT = {
    "plan": "this is a plan: nothing runs that could be broken",
    "replay": "this run is over: it can be replayed",
}

PORT_MAX = 65535


def port(text: str) -> int:
    """The number of a TCP port; 0 for one that is free."""
    if not (text.isascii() and text.isdecimal() and int(text) <= PORT_MAX):
        raise argparse.ArgumentTypeError(f"must be between 0 and {PORT_MAX} (got {text})")
    return int(text)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    view = add(subparsers, "view", view_command, __file__)
    view.add_argument("what", nargs="*", metavar="RUN|PLAN", help="a run, a scenario, a plan; two runs make a race")
    add_runs(view)
    view.add_argument("--port", type=port, default=0, help="the port on 127.0.0.1 (one that is free)")
    view.add_argument("--export", type=Path, metavar="FILE", help="write the replay as one HTML file instead, and end")
    labname.add_option(view)


def view_command(arguments: argparse.Namespace) -> int:
    from page import Microscope, PacketAnswers, RequestHandler, Viewer, export, plan_view, replay_view, what_is

    if not arguments.what and arguments.export is None and (lab := running_lab()) is not None:
        return lab_view(lab, arguments)
    if len(arguments.what) > 2:
        raise ValueError(f"view takes one run or plan, or two runs for a race, not {len(arguments.what)}")
    views = [what_is(arguments.runs, name) for name in arguments.what or ["lab"]]
    runs = [view for view in views if isinstance(view, Path)]
    plans = [view for view in views if not isinstance(view, Path)]
    if len(plans) == len(views) == 1:
        shown = plan_view(plans[0])
    elif plans:
        raise ValueError("a race is between two runs: a plan has no time")
    else:
        shown = replay_view(runs)
    if arguments.export is not None:
        if plans:
            raise ValueError("--export writes the replay of runs, and this is a plan: ./lab graph draws it")
        size = export.write(runs, arguments.export)
        sys.stdout.write(path_line("wrote", arguments.export, f", {size / 1e6:.1f} MB"))
        return 0
    handler = RequestHandler(
        shown.plans, Microscope(shown.plans), answer=PacketAnswers(shown.runs), why_not=WHY_NOT[shown.mode]
    )
    with Viewer(shown.document(), shown.runs, handler, tell, arguments.port) as viewer:
        say(shown.title, viewer.address)
        viewer.over.wait()
    raise RuntimeError("view: the page's server cannot be kept up; its messages are above")


def running_lab() -> Lab | None:
    """The lab that is up, with root to look into it; None when there is none."""
    from topo.emulation import Lab, NoLabError

    try:
        Lab.attach()
    except NoLabError:
        if labname.chosen() != labname.DEFAULT_LAB:
            raise
        return None
    need_root("view reads the agents' journals and breaks things when you click")
    import controller

    return Lab.attach(provision=controller.provision)


def lab_view(lab: Lab, arguments: argparse.Namespace) -> int:
    """Serves a lab that is up until it is taken down; what is seen is thrown away then."""
    from page import LabPage

    file = Path("played.py")
    with Scratch("mrclab-seen-") as folder, LabPage(lab, folder, file, tell, hand_over, arguments.port) as view:
        say(view.view.title, view.viewer.address)
        view.wait()
    sys.stdout.write("the lab was taken down\n")
    return 0


def say(title: str, address: str) -> None:
    """The one address, at once."""
    sys.stdout.write(f"{printable(title)}: {address}\n")
    sys.stdout.flush()


def tell(what: Any) -> None:
    write_error(f"mrclab: {what}")
