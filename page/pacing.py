"""A run in virtual time that people hold, step and break: its own thread does what they ask, between slices of time.

Slices change nothing: time that passes in pieces is the same time (`running/worlds/virtual_time.py`).
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from common.journal import Journal
from running.worlds import World
from topo.fault import VERBS, Fault

ASK_S = 30.0
MOMENT_S = 0.02
OVER = "the run is over: nothing can be broken any more"


class RunPacer:
    """Where other threads leave work for the run's thread, and hold it."""

    def __init__(self, paused: bool = False) -> None:
        self._work: queue.Queue[tuple[Callable[[], Any], Future[Any]] | None] = queue.Queue()
        self._paused = paused
        self._steps = 0
        self._lock = threading.Lock()
        self._over = False
        self._interrupted = False

    @property
    def paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        """Hold the run at the end of the present slice."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._work.put(None)

    def step(self) -> None:
        """Let one more slice pass, and hold the run then."""
        with self._lock:
            self._paused = True
            self._steps += 1
        self._work.put(None)

    def do(self, act: Callable[[], Any]) -> Any:
        """Have the run's thread do something between two slices; its result, or its exception.

        RuntimeError when the run is over, TimeoutError when it is busy for too long.
        """
        if self._over:
            raise RuntimeError(OVER)
        result: Future[Any] = Future()
        self._work.put((act, result))
        if self._over:
            self.end()  # its owner may be gone
        return result.result(ASK_S)

    def serve(self) -> None:
        """Do what others want; returns when time may pass."""
        while True:
            self.work()
            with self._lock:
                if not self._paused:
                    return
                if self._steps:
                    self._steps -= 1
                    return
            self._one(self._work.get())

    def work(self) -> None:
        """Do what others want by now. KeyboardInterrupt when the run was interrupted."""
        for request in self._waiting():
            self._one(request)
        if self._interrupted:
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        """Have the run's thread raise KeyboardInterrupt between two slices, as Ctrl-C does in the main thread."""
        self._interrupted = True
        self._work.put(None)

    def end(self) -> None:
        """The run is over: threads that wait are told so."""
        self._over = True
        for request in self._waiting():
            if request is not None:
                request[1].set_exception(RuntimeError(OVER))

    def _waiting(self) -> Iterator[tuple[Callable[[], Any], Future[Any]] | None]:
        """The work that is left by now. Two threads may look: `get` would wait for work that the other took."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._work.get_nowait()

    def _one(self, request: tuple[Callable[[], Any], Future[Any]] | None) -> None:
        if request is None:
            return
        act, result = request
        try:
            result.set_result(act())
        except Exception as error:  # it is the asking thread's to handle
            result.set_exception(error)


class Closing:
    """A world that says when it is taken down; all else is the world's own."""

    def __init__(self, world: World, closed: Callable[[], None]) -> None:
        self._world = world
        self._closed = closed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def close(self) -> None:
        self._closed()
        self._world.close()


class Pacers:
    """The pacers of runs that are held and stepped together: `page.request_handler.Pausable`."""

    def __init__(self, pacers: Sequence[RunPacer]) -> None:
        self._pacers = pacers

    @property
    def paused(self) -> bool:
        return any(pacer.paused for pacer in self._pacers)

    def pause(self) -> None:
        for pacer in self._pacers:
            pacer.pause()

    def resume(self) -> None:
        for pacer in self._pacers:
            pacer.resume()

    def step(self) -> None:
        for pacer in self._pacers:
            pacer.step()


class Abreast:
    """Keeps runs of several threads within a slice of each other: whichever is ahead waits for the others."""

    def __init__(self, runs: int) -> None:
        self._at_ns = [0] * runs
        self._gone = [False] * runs
        self._changed = threading.Condition()

    def arrive(self, run: int, t_ns: int) -> bool:
        """A run has come to this time. Whether all others that go on have come as far, after a moment's wait."""
        with self._changed:
            self._at_ns[run] = t_ns
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._gone[run] or self._abreast(t_ns), MOMENT_S)

    def _abreast(self, t_ns: int) -> bool:
        return all(gone or at_ns >= t_ns for gone, at_ns in zip(self._gone, self._at_ns, strict=True))

    def leave(self, run: int) -> None:
        """A run is over: no run waits for it any more, and it waits for none."""
        with self._changed:
            self._gone[run] = True
            self._changed.notify_all()


class PacedWorld(Closing):
    """A world whose time passes in slices of `slice_ns` with a pacer's work between them."""

    def __init__(
        self, world: World, pacer: RunPacer, slice_ns: int, arrive: Callable[[int], bool] = lambda t_ns: True
    ) -> None:
        """`arrive` says whether the next slice may begin."""
        super().__init__(world, pacer.end)
        self._arrive = arrive
        self._pacer = pacer
        self._slice_ns = max(1, slice_ns)

    def wait_until(self, t_ns: int) -> None:
        while self._world.now_ns() < t_ns:
            while not self._arrive(self._world.now_ns()):
                self._pacer.work()  # a run that is held may stay so for long
            self._pacer.serve()
            self._world.wait_until(min(t_ns, self._world.now_ns() + self._slice_ns))
        self._world.wait_until(t_ns)


class PacedInjector:
    """`page.request_handler.FaultInjector` of a world that only its own thread may touch.

    Journals what people do, as a running lab does by itself (node `lab`).
    """

    def __init__(self, world: World, pacer: RunPacer, journal: Journal) -> None:
        self._world = world
        self._pacer = pacer
        self._journal = journal

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        def act() -> Fault:
            t_ns = self._world.now_ns()
            fault = self._world.active.inject(verb, target, value, seed)
            self._journal.write("fault", t_ns=t_ns, **fault.line("begin"))
            if not VERBS[verb].lasting:
                self._journal.write("fault", t_ns=t_ns, **fault.line("end"))
            return fault

        done = self._pacer.do(act)
        assert isinstance(done, Fault)
        return done

    def undo(self, fault: Fault) -> None:
        def act() -> None:
            t_ns = self._world.now_ns()
            self._world.active.undo(fault)
            self._journal.write("fault", t_ns=t_ns, **fault.line("end"))

        self._pacer.do(act)

    def faults(self) -> list[Fault]:
        return list(self._pacer.do(self._world.active.faults))
