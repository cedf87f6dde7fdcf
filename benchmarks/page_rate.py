"""How fast the page draws: frames a second and the first picture, in headless Chromium, of plans `lab` and `wide`.

    python benchmarks/page_rate.py [--plans lab wide] [--seconds 5]

Peer: the browser itself, whose pace (`browser`) a loop that draws nothing shows. `a frame` is what one picture of the
fabric costs the page's own code; what the browser then rasterises comes on top.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.rig.browser import MISSING, Page, browser
from page.desk import Desk
from page.microscope import Microscope
from page.stage import replay_stage
from page.viewer import Viewer
from running.directory import find

SECONDS = 5.0
FRAME_COST = """(() => {
  const view = { colours: lab.colours, verbs: lab.verbs, chosen: {} }, begun = performance.now();
  for (let i = 0; i < 50; i++) lab.lanes[0].draw(lab.player.t + i * 1e7, lab.unit, view);
  return (performance.now() - begun) / 50;
})()"""
"""Milliseconds of the page's own code for one picture of the fabric."""
EMPTY_FRAMES = """new Promise((done) => {
  let frames = 0;
  const end = performance.now() + SECONDS * 1000;
  const tick = () => performance.now() < end ? (frames++, requestAnimationFrame(tick)) : done(frames / SECONDS);
  tick();
})"""
"""Frames a second of a loop that draws nothing, beside the page's own."""


def recorded(folder: Path, plan: str) -> Path:
    """A run of `link-flap` in virtual time on this plan, broken off after some seconds."""
    words = ["run", "link-flap", "--plan", plan, "--world", "simulated", "--seed", "7", "--until", "12", "--plain"]
    line = [sys.executable, "-m", "cli", *words, "--runs", str(folder)]
    subprocess.run(line, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return find(folder, "latest")


def frames_a_second(page: Page, seconds: float) -> float:
    before, begun_s = page.value("lab.frames"), time.monotonic()
    page.page.wait_for_timeout(seconds * 1000)
    return float(page.value("lab.frames") - before) / (time.monotonic() - begun_s)


def measured(run: Path, width: int, height: int, seconds: float) -> str:
    """First picture, time to have read everything, frames a second while it plays, cost of a frame."""
    stage = replay_stage([run])
    desk = Desk(stage.plans, Microscope(stage.plans))
    with Viewer(stage.document(), stage.runs, desk, print) as viewer, browser(width, height) as opened:
        page = opened()
        begun_s = time.monotonic()
        page.open(viewer.address)
        first_s = time.monotonic() - begun_s
        page.until_read()
        read_s = time.monotonic() - begun_s
        page.value("(lab.player.go(0), lab.player.toggle())")
        playing = frames_a_second(page, seconds)
        cost_ms = page.value(FRAME_COST)
        empty = page.value(EMPTY_FRAMES.replace("SECONDS", str(seconds)))
    return f"{first_s:6.2f} s {read_s:6.2f} s {playing:8.1f} {empty:8.1f} {cost_ms:9.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", nargs="+", default=["lab", "wide"])
    parser.add_argument("--seconds", type=float, default=SECONDS)
    arguments = parser.parse_args()
    if MISSING:
        sys.exit(MISSING)
    print("plan   size          first     read  frames/s  browser   a frame")
    with tempfile.TemporaryDirectory() as folder:
        for plan in arguments.plans:
            run = recorded(Path(folder), plan)
            for width, height in ((1280, 720), (2560, 1440)):
                print(f"{plan:6} {width}×{height:<6} {measured(run, width, height, arguments.seconds)}", flush=True)


if __name__ == "__main__":
    main()
