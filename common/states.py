"""States of queue pairs and of EVs, as the transports, uverbs and programs name them."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["EvEvent", "QPState"]


class QPState(Enum):
    """InfiniBand Architecture, volume 1, chapter 10, without SQE, which reliable connections do not have."""

    RESET = "reset"
    INIT = "init"
    RTR = "rtr"
    RTS = "rts"
    SQD = "sqd"
    ERROR = "error"
    ERR = ERROR  # as verbs call it


@dataclass(frozen=True, slots=True)
class EvEvent:
    """An EV is GOOD (1) or ASSUMED_BAD (2) now; `drop_count` events were lost between the last one and this. An EV has
    a state in each queue pair: `qp_num` and `host`, its peer, are ours beside the API's fields."""

    profile_id: int
    ev: int
    port: int
    drop_count: int
    state: int
    qp_num: int
    host: str
