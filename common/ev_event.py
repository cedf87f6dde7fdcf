"""An EV event, as the MRC core makes it and as a program gets it over uverbs."""

from __future__ import annotations

from dataclasses import dataclass


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
