"""The process that keeps a lab in virtual time: time passes when a command asks for it, in slices between requests."""

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from common.outcome import error_line
from common.terminal.standard_streams import write_error
from running.directory import RunDirectory
from running.transport_choice import transport
from running.view.keeper import Keeper, keep
from running.view.remote import REMOTE
from running.view.virtual import VirtualLab
from running.view.wire import decoded, encoded
from running.worlds import SimulatedWorld

SLICE_S = 0.02
"""Of real time, for which a lab whose time passes does not answer."""
SLICE_NS, SLICE_NS_MAX = 1_000, 1_000_000_000
STEP_S_MAX = 3600.0


class LastingWorld(SimulatedWorld):
    """A full disk costs lines of its journals, and not the lab."""

    lossy = True


class VirtualKeeper(Keeper):
    """Answers what `RemoteLab` asks."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        directory = RunDirectory(Path(asked["folder"]))
        plan, choice = directory.plan(), transport(asked["transport"])
        self.world = LastingWorld(plan, choice, int(asked["seed"]), directory, lambda _: None)
        super().__init__(directory.path, self.world.close)
        self.lab = VirtualLab(self.world)
        self.until_ns, self._slice_ns = 0, SLICE_NS
        self.operations = {
            **{name: partial(self.call, name) for name in REMOTE},
            "clock": lambda _: self.clock(),
            "step": self.step,
            "send": lambda r: self.world.clients[plan.host(r["host"]).name].send(r["request"], **r["arguments"]),
            "take": lambda r: self.world.clients[plan.host(r["host"]).name].take(int(r["ident"])),
            "end": lambda _: self.over(),
        }

    def call(self, name: str, request: Mapping[str, Any]) -> Any:
        """A method of the lab."""
        return encoded(getattr(self.lab, name)(*decoded(request["arguments"], self.lab.plan)))

    def clock(self) -> dict[str, int]:
        """The lab's time, and the time at which it will stand still."""
        return {"now_ns": self.lab.now_ns(), "until_ns": self.until_ns}

    def step(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Let time pass for some seconds from now, or at once no more for 0; does not wait."""
        seconds = float(request["seconds"])
        if not 0 <= seconds <= STEP_S_MAX:
            raise ValueError(f"a step must be between 0 and {STEP_S_MAX:g} s (got {seconds:g})")
        passing, end_ns = self.until_ns > self.lab.now_ns(), self.lab.now_ns() + round(seconds * 1e9)
        self.until_ns = max(self.until_ns, end_ns) if seconds else end_ns
        if not passing:
            self.loop.call_soon(self._pass)
        return {**self.clock(), "end_ns": end_ns}

    def _pass(self) -> None:
        """One slice, of about SLICE_S of real time. It may end later than a request has asked for meanwhile."""
        now_ns, began_s = self.lab.now_ns(), time.monotonic()
        if self.closed or now_ns >= self.until_ns:
            return
        try:
            self.world.wait_until(min(self.until_ns, now_ns + self._slice_ns))
        except Exception as error:  # the lab stands still, and can be looked at
            self.until_ns = self.lab.now_ns()
            write_error(f"time stands still: {error_line(error)}")
        took = max(time.monotonic() - began_s, 1e-6)
        self._slice_ns = min(max(round(self._slice_ns * min(SLICE_S / took, 2.0)), SLICE_NS), SLICE_NS_MAX)
        self.heard()
        self.loop.call_soon(self._pass)

    def over(self) -> None:
        self.close()
        super().over()


if __name__ == "__main__":
    sys.exit(keep(VirtualKeeper))
