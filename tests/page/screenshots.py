"""The screenshots of the page that the docs show, from runs in virtual time.

    python -m tests.page.screenshots [--size 1280x720 2560x1440] [--to FOLDER] [--both]

Needs Chromium and the extra `browser`. Runs are the same on every machine, and so are the pictures, but for its fonts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from page.live import PacketAnswers
from page.microscope import Microscope
from page.request_handler import RequestHandler
from page.view import View, plan_view, replay_view
from page.viewer import Viewer
from running.directory import find
from tests.helpers.browser import MISSING, Page, browser
from topo.planfile import load_plan

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def run(folder: Path, scenario: str, *words: str) -> Path:
    """A run in virtual time with seed 7."""
    line = [sys.executable, "-m", "cli", "run", scenario, "--world", "simulated", "--seed", "7", "--plain"]
    subprocess.run([*line, "--runs", str(folder), *words], check=False, stdout=subprocess.DEVNULL)
    return find(folder, "latest")


def pick(page: Page, text: str) -> None:
    """Choose by name, as a person would type it."""
    page.page.keyboard.press("/")
    page.page.keyboard.type(text)
    page.page.keyboard.press("Enter")


def go(page: Page, seconds: float) -> None:
    page.value(f"lab.player.go({seconds} * 1e9)")


def flap(page: Page) -> None:
    """A moment after the first path was left, with the pair that left it, and that path."""
    line = page.value("lab.lanes[0].record.events.find((line) => line.kind === 'ev')")
    go(page, page.value(f"{line['t_ns']} - lab.lanes[0].record.start") / 1e9 + 0.1)
    pick(page, f"{line['node']} {line['peer']}")
    page.value(f"lab.choose({line['ev']})")


def microscope(page: Page) -> None:
    """The next trimmed packet after the log begins."""
    page.value("lab.player.go(lab.lanes[0].record.packets[0].t_ns - lab.lanes[0].record.start)")
    pick(page, "h4 h0")
    page.page.click("[data-key=trimmed]")
    page.until("document.querySelector('#panel').textContent.includes('trim_beyond')")
    page.until("document.querySelector('#receiver')")
    page.value("document.querySelector('[data-key=trimmed]').scrollIntoView()")


def race(page: Page) -> None:
    first = page.value(
        "lab.lanes[0].record.events.find((line) => line.kind === 'fault').t_ns - lab.lanes[0].record.start"
    )
    go(page, first / 1e9 + 0.5)


def wide(page: Page) -> None:
    page.value("lab.lanes[0].fold(2)")
    pick(page, "h0 h5")


def taken(view: View, pose: Callable[[Page], Any], size: tuple[int, int], scheme: Any, path: Path) -> None:
    """One picture; RuntimeError when the page complained on its console."""
    handler = RequestHandler(view.plans, Microscope(view.plans), answer=PacketAnswers(view.runs))
    with Viewer(view.document(), view.runs, handler, print) as viewer, browser(*size, scheme) as opened:
        page = opened()
        page.open(viewer.address)
        if view.mode != "plan":
            page.until_read()
        pose(page)
        frames = page.value("lab.frames")
        page.until(f"lab.frames > {frames + 20}")  # the panel follows a moment behind
        page.page.screenshot(path=path)
        if page.console:
            raise RuntimeError(f"{path.name}: {page.console}")
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", default=["1280x720"], help="WIDTHxHEIGHT; the first has plain names")
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--both", action="store_true", help="each picture dark and light, for a look at all of them")
    arguments = parser.parse_args()
    if MISSING:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        mrc, roce = (run(runs, "link-flap", "--until", "34", "--transport", name) for name in ("mrc", "roce"))
        incast = run(runs, "incast", "--until", "15.5", "--record-packets", "15..15.4")
        for name, view, pose, scheme in (
            ("view-link-flap", replay_view([mrc]), flap, "light"),
            ("view-race", replay_view([mrc, roce]), race, "light"),
            ("view-microscope", replay_view([incast]), microscope, "dark"),
            ("view-wide", plan_view(load_plan("wide")), wide, "light"),
        ):
            for size in arguments.size:
                width, height = map(int, size.split("x"))
                suffix = "" if size == arguments.size[0] else f"-{size}"
                taken(view, pose, (width, height), scheme, arguments.to / f"{name}{suffix}.png")
                if arguments.both:
                    other = "dark" if scheme == "light" else "light"
                    taken(view, pose, (width, height), other, arguments.to / f"{name}-{other}{suffix}.png")


if __name__ == "__main__":
    main()
