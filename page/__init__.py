"""The lab in a browser: one page for a running lab, a run that is going on, a recorded run, or a plan."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from page.live import Going, LabPage, PacketAnswers, RunView
    from page.microscope import Microscope
    from page.request_handler import RequestHandler
    from page.view import plan_view, replay_view, what_is
    from page.viewer import Viewer
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "Going", "LabPage", "Microscope", "PacketAnswers", "RequestHandler", "RunView", "Viewer", "export", "plan_view",
    "replay_view", "what_is",
]  # fmt: skip
