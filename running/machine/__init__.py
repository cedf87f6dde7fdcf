"""The machine during runs: how late and how busy it is, and processes that end with their owner."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from running.machine.workers import WORKERS_MAX, Workers
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["WORKERS_MAX", "Workers"]
