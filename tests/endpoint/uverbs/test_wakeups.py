"""Armed queues and their channels: in whatever order completions, armings and polls meet, nobody sleeps for ever."""

from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from common import uverbs
from endpoint.transport import Completion, CompletionStatus
from endpoint.uverbs.channel import Channel
from endpoint.uverbs.queues import Completions, GuestQp

NUMBER = 3


class Queue:
    """The transport's queue."""

    def __init__(self) -> None:
        self.done: deque[Completion] = deque()

    def poll(self, limit: int = 16) -> list[Completion]:
        return [self.done.popleft() for _ in range(min(limit, len(self.done)))]


class World:
    """The agent's side, the two sockets between, and a program that reads either of them when it likes."""

    def __init__(self) -> None:
        self.room = 0
        self.events: deque[int] = deque()
        self.rows: deque[uverbs.CompletionRow] = deque()
        self.queue: Any = Queue()
        self.channel = Channel(self.notify, lambda: None)
        self.completions = Completions(NUMBER, self.queue, 1000, self.channel)
        self.on_the_way: deque[uverbs.Arm] = deque()
        self.seen = 0
        self.unseen_solicited = 0
        """Solicited or failed completions that the program has not seen."""
        self.asked: uverbs.Arm | None = None
        """The last arming, while no event has come since."""

    def notify(self, event: bytes) -> bool:
        if len(self.events) >= self.room:
            return False
        self.events.append(uverbs.unpack_event(event))
        return True

    def complete(self, solicited: bool, failed: bool) -> None:
        status = CompletionStatus.FLUSHED if failed else CompletionStatus.SUCCESS
        self.queue.done.append(Completion(1, 9, status, "recv_imm", 0, 7, solicited))
        self.unseen_solicited += solicited or failed

    def agent(self) -> None:
        """One turn: note what completed, make events, send what the sockets take, read one arming."""
        guests: dict[int, GuestQp] = {}
        self.completions.drain(guests)
        self.channel.flush()
        if self.on_the_way:
            arm = self.on_the_way.popleft()
            self.completions.armed.arm(arm.seen, arm.solicited)

    def send_rows(self, count: int) -> None:
        self.rows += self.completions.take(count)

    def poll(self) -> None:
        while self.rows:
            self.rows.popleft()
            self.seen += 1

    def arm(self, solicited: bool) -> None:
        self.asked = uverbs.Arm(NUMBER, self.seen, solicited)
        self.on_the_way.append(self.asked)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("complete"), st.booleans(), st.booleans()),
        st.tuples(st.sampled_from(["agent", "poll", "take"])),
        st.tuples(st.just("rows"), st.integers(1, 4)),
        st.tuples(st.just("arm"), st.booleans()),
        st.tuples(st.just("room"), st.integers(0, 3)),
    ),
    max_size=60,
)


@settings(max_examples=500)
@given(steps)
def test_whoever_has_armed_and_not_seen_all_is_woken(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for name, *given_ in steps:
        if name == "complete":
            world.complete(*given_)
        elif name == "rows":
            world.send_rows(*given_)
        elif name == "arm":
            world.arm(*given_)
        elif name == "room":
            world.room = given_[0]
        elif name == "take":
            if world.events:
                world.events.popleft()
                world.asked = None
        else:
            getattr(world, name)()
    # From here on the program sleeps on its channel, which has room, and the agent goes on turning.
    world.room = 1 << 20
    for _ in range(len(world.on_the_way) + 2):
        world.agent()
    if world.asked is not None:
        due = world.completions.armed.solicited if world.asked.solicited else world.completions.armed.produced
        if due > world.seen:
            assert NUMBER in world.events
    assert world.completions.armed.produced >= world.seen


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=20), st.booleans())
def test_an_arming_brings_one_event_and_only_for_what_it_asked(done: list[tuple[bool, bool]], only: bool) -> None:
    world = World()
    world.room = 100
    world.arm(only)
    world.agent()
    for solicited, failed in done:
        world.complete(solicited, failed)
        world.agent()
    wanted = [solicited or failed or not only for solicited, failed in done]
    assert len(world.events) == min(1, sum(wanted))


def test_a_full_channel_owes_one_event_a_queue() -> None:
    world = World()
    for _ in range(50):
        world.complete(True, False)
        world.arm(False)
        world.agent()
        world.agent()
    assert not world.events
    world.room = 100
    world.agent()
    assert list(world.events) == [NUMBER]
