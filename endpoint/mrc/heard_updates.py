"""Which port status updates of a peer are news: by their ids, of which the API asks only that they are unique.

A repetition has an id that was heard lately. An update that a newer one has overtaken on the way was usually never
heard; what gives it away, where a peer counts its ids up as ours does, is an id a little behind the newest. A peer that
draws its ids at random, or starts anew, is misjudged by that once in a thousand times, for a few round trips.
"""

from __future__ import annotations

from enum import Enum

IDS = 1 << 16
BEHIND_MAX = 64
"""An id this little behind the newest, or less, is older than the newest; one further behind is another count."""
UNDER_WAY_INTERVALS = 8
"""No frame is under way for longer than this."""
REMEMBERED_INTERVALS = 64
REMEMBERED_MAX = 64


class UpdateRelation(Enum):
    """How an update relates to the updates heard before."""

    NEWS = "news"
    REPEATED = "repeated"
    OVERTAKEN = "overtaken"


class HeardUpdates:
    """The updates of one peer. `interval_ns` is the time between repetitions of an update."""

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._heard: dict[int, int] = {}
        """When each id was first heard, oldest first."""
        self._newest = 0
        self._newest_ns = -(1 << 62)

    def standing(self, request_id: int, now_ns: int) -> UpdateRelation:
        """Judge an update by its id; news is remembered."""
        heard_ns = self._heard.pop(request_id, None)
        if heard_ns is not None and now_ns < heard_ns + REMEMBERED_INTERVALS * self._interval_ns:
            self._heard[request_id] = heard_ns
            return UpdateRelation.REPEATED
        recent = now_ns < self._newest_ns + UNDER_WAY_INTERVALS * self._interval_ns
        if recent and (self._newest - request_id) % IDS <= BEHIND_MAX:
            return UpdateRelation.OVERTAKEN
        self._heard[request_id] = now_ns
        if len(self._heard) > REMEMBERED_MAX:
            del self._heard[next(iter(self._heard))]
        self._newest, self._newest_ns = request_id, now_ns
        return UpdateRelation.NEWS
