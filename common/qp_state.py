"""States of a queue pair, as the transports, uverbs and programs name them."""

from __future__ import annotations

from enum import Enum


class QPState(Enum):
    """InfiniBand Architecture, volume 1, chapter 10, without the SQ states."""

    RESET = "reset"
    INIT = "init"
    RTR = "rtr"
    RTS = "rts"
    ERROR = "error"
    ERR = ERROR  # as verbs call it
