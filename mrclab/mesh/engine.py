"""An engine: runs the coroutines of collectives as the network allows, in a thread or in the caller's.

On real links a separate thread owns the NIC, so that collectives go on while the program computes. In virtual time
the lab waits for the program: time passes only inside `finish`, in the caller's thread, so that a seed repeats a run.
"""

import contextlib
import os
import select
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mrclab.context import Context
from mrclab.errors import JobFailedError, MRCError
from mrclab.mesh.link import Call
from mrclab.mesh.mesh import Mesh, PeerError, Step

T = TypeVar("T")

QUIET_RTTS = 40
"""Round trips without news after which an engine that waits asks the other ranks for a sign of life."""
GOODBYE_RTTS = 200
"""Round trips that a rank which leaves gives the others to leave as well."""


Done = Callable[[BaseException | None], None]
Mode = Callable[[], contextlib.AbstractContextManager[Any]]
"""Surrounds what the engine does with the memory of programs."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The call that a task belongs to, and the ranks that take part: they are told if it fails."""

    call: Call
    ranks: tuple[int, ...]


@dataclass(eq=False)
class MeshTask:
    """A coroutine under way. `done` is called once, with the failure or None, by the thread that drives the NIC: it
    must neither wait nor run code of the program."""

    name: str
    step: Step
    deadline_ns: int | None
    done: Done = lambda failure: None
    scope: Scope | None = None
    failure: BaseException | None = None
    finished: threading.Event = field(default_factory=threading.Event)

    def end(self, failure: BaseException | None) -> None:
        self.failure = failure
        self.finished.set()
        self.done(failure)


class MeshEngine(ABC):
    """Runs tasks in the order in which they were started; each is advanced whenever something has arrived.

    A task that raises ends alone, as does one whose time is over; the ranks of its scope are told. What the NIC or the
    mesh raises ends the engine, and every task with it."""

    def __init__(self, context: Context, rank: int, mode: Mode = contextlib.nullcontext) -> None:
        self._mode = mode
        self.mesh = Mesh(context, rank)
        self.context = context
        self.failure: BaseException | None = None
        self._quiet_ns = QUIET_RTTS * self.mesh.rtt_ns
        self._tasks: deque[MeshTask] = deque()
        self._news_ns = context.now_ns()
        self._busy_ns = self._busy_since_ns = 0

    def busy_ns(self) -> int:
        """Lab time during which at least one task was under way."""
        return self._busy_ns + (self.context.now_ns() - self._busy_since_ns if self._tasks else 0)

    def start(
        self, name: str, step: Step, timeout_s: float | None, done: Done | None = None, scope: Scope | None = None
    ) -> MeshTask:
        """Begin a task; the name is for messages. `timeout_s` is in lab time."""
        now_ns = self.context.now_ns()
        deadline_ns = None if timeout_s is None else now_ns + round(timeout_s * 1e9)
        task = MeshTask(name, step, deadline_ns, done or (lambda failure: None), scope)
        self._admit(task)
        return task

    @abstractmethod
    def _admit(self, task: MeshTask) -> None: ...

    @abstractmethod
    def finish(self, task: MeshTask, timeout_s: float | None = None) -> None:
        """Wait for a task. Raises what made it fail, or TimeoutError after `timeout_s` seconds."""

    @abstractmethod
    def call(self, function: Callable[[], T]) -> T:
        """The result of a function that is called between two steps of the tasks. It must not wait for other ranks: no
        task goes on meanwhile, and another rank may need one."""

    def give_up(self, scope: Scope, why: str) -> None:
        """A call fails here before it begins: the other ranks are told."""

        def step() -> Step:
            self._give_up(scope, why)
            yield from ()

        self._admit(MeshTask("refusal", step(), None))

    @abstractmethod
    def sleep(self, seconds: float) -> None:
        """Let the lab's time pass while the tasks go on. Raises what ended the engine where time passes no more."""

    @abstractmethod
    def close(self) -> None:
        """Say goodbye to the other ranks, and close the NIC."""

    def _add(self, task: MeshTask) -> None:
        if not self._tasks:
            self._busy_since_ns = self.context.now_ns()
        self._tasks.append(task)

    def _remove(self, task: MeshTask) -> None:
        self._tasks.remove(task)
        if not self._tasks:
            self._busy_ns += self.context.now_ns() - self._busy_since_ns

    def _turn(self) -> None:
        """Advance everything as far as it goes without waiting. Raises what ends the engine."""
        moved = True
        while moved:
            moved = self.mesh.take(self.mesh.cq.poll(64))
            if moved:
                self._news_ns = self.context.now_ns()
            for task in list(self._tasks):
                moved = self._advance(task) or moved
            moved = moved or self.mesh.cq.ready > 0  # posting reads what the agent says while its socket is full
            now_ns = self.context.now_ns()
            moved = self._expire(now_ns) or moved
        self._ask(now_ns)

    def _advance(self, task: MeshTask) -> bool:
        """Whether it has ended."""
        try:
            if next(task.step, self) is not self:  # a coroutine yields None until it has ended
                return False
        except (MRCError, PeerError):
            raise
        except Exception as error:  # the call's own
            self._end(task, error)
        else:
            self._end(task, None)
        return True

    def _expire(self, now_ns: int) -> bool:
        """End the tasks whose time is over; whether there were any."""
        late = [task for task in self._tasks if task.deadline_ns is not None and now_ns > task.deadline_ns]
        for task in late:
            self._end(task, TimeoutError(f"{task.name} has not ended within its timeout{self._awaited(task)}"))
        return bool(late)

    def _awaited(self, task: MeshTask) -> str:
        """The ranks of which a task waits for a message, and the number of its call, in words."""
        ranks = [] if task.scope is None else self.mesh.awaited(task.scope.call)
        if not ranks or task.scope is None:
            return ""
        return f" (call {task.scope.call[1]} of its group waits for rank {' and '.join(map(str, ranks))})"

    def _end(self, task: MeshTask, failure: Exception | None) -> None:
        self._remove(task)
        if failure is not None:
            task.step.close()
            if task.scope is not None:
                self._give_up(task.scope, str(failure), late=isinstance(failure, TimeoutError))
        task.end(failure)

    def _give_up(self, scope: Scope, why: str, late: bool = False) -> None:
        if scope.call in self.mesh.failed:  # by another rank, which tells the others
            return
        self.mesh.abandon(scope.call, why)
        others = [rank for rank in scope.ranks if rank != self.mesh.rank]
        self._add(self._notice("notice", self.mesh.tell_failure(others, scope.call, why, late)))

    def _notice(self, name: str, step: Step) -> MeshTask:
        deadline_ns = self.context.now_ns() + GOODBYE_RTTS * self.mesh.rtt_ns
        return MeshTask(name, step, deadline_ns)

    def _ask(self, now_ns: int) -> None:
        if self._tasks and now_ns - self._news_ns > self._quiet_ns:
            self._news_ns = now_ns
            self.mesh.ping(now_ns)

    def _fail(self, error: BaseException) -> None:
        """This rank cannot go on: every task ends, and the other ranks see its queue pairs go."""
        self.failure = error
        while self._tasks:
            self._tasks.popleft().end(error)
        self.context.close()

    def _goodbye(self) -> MeshTask:
        task = self._notice("goodbye", self.mesh.goodbye())
        self._admit(task)
        return task

    def _check(self) -> None:
        """Raises `JobFailedError` with what has ended this rank, which is the first cause of all that fails then."""
        if self.failure is not None:
            raise JobFailedError(f"this rank has failed: {self.failure}")


class SteppedEngine(MeshEngine):
    """In virtual time."""

    def _admit(self, task: MeshTask) -> None:
        if self.failure is not None:
            task.end(self.failure)
            return
        self._add(task)
        with self._mode():
            self._guarded(self._turn)

    def finish(self, task: MeshTask, timeout_s: float | None = None) -> None:
        deadline_ns = None if timeout_s is None else self.context.now_ns() + round(timeout_s * 1e9)
        with self._mode():  # once for all turns: for one it costs a twentieth of the turn
            while not task.finished.is_set():
                if deadline_ns is not None and self.context.now_ns() > deadline_ns:
                    raise TimeoutError(f"{task.name} has not ended within {timeout_s:g} s")
                self._guarded(self._wait)
        if task.failure is not None:
            raise _failed(task)

    def call(self, function: Callable[[], T]) -> T:
        self._check()
        return function()

    def sleep(self, seconds: float) -> None:
        if self.failure is None:
            self._guarded(lambda: self._pass(self.context.now_ns() + round(seconds * 1e9)))
        self._check()

    def close(self) -> None:
        if self.failure is None:
            with contextlib.suppress(JobFailedError):
                self.finish(self._goodbye())
        self.context.close()

    def _wait(self) -> None:
        self.mesh.take(self.mesh.cq.wait(self._quiet_ns / 1e9))
        self._turn()

    def _pass(self, until_ns: int) -> None:
        with self._mode():
            while (left_ns := until_ns - self.context.now_ns()) > 0:
                self.mesh.take(self.mesh.cq.wait(left_ns / 1e9))
                self._turn()

    def _guarded(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:  # of any kind: tasks must not wait for ever
            self._fail(error)


class ThreadedEngine(MeshEngine):
    """On real links: a daemon thread owns the context."""

    def __init__(self, context: Context, rank: int, mode: Mode = contextlib.nullcontext) -> None:
        super().__init__(context, rank, mode)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._calls: deque[Callable[[], None]] = deque()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="mrclab", daemon=True)
        self._thread.start()

    def _admit(self, task: MeshTask) -> None:
        self._post(lambda: task.end(self.failure) if self.failure else self._add(task))

    def finish(self, task: MeshTask, timeout_s: float | None = None) -> None:
        if not task.finished.wait(timeout_s):
            raise TimeoutError(f"{task.name} has not ended within {timeout_s:g} s")
        if task.failure is not None:
            raise _failed(task)

    def call(self, function: Callable[[], T]) -> T:
        outcome: list[Any] = []
        called = threading.Event()

        def run() -> None:
            try:
                self._check()
                outcome.extend((function(), None))
            except Exception as error:  # it is the caller's
                outcome.extend((None, error))
            called.set()

        self._post(run)
        called.wait()
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]  # type: ignore[no-any-return]

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        if self._stop:
            return
        if self.failure is None:
            with contextlib.suppress(JobFailedError):
                self.finish(self._goodbye())
        self._stop = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)
        self.context.close()

    def _post(self, function: Callable[[], None]) -> None:
        if self._stop:  # the thread has ended, and the descriptor's number may be another file's
            raise JobFailedError("this rank has left the job")
        self._calls.append(function)
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        with self._mode():
            while not self._stop:
                self._serve()

    def _serve(self) -> None:
        """One turn, and sleep until there is something to do."""
        while self._calls:
            self._calls.popleft()()
        waits = select.poll()  # `select` takes no descriptor above 1023, and programs may open many
        waits.register(self._wake, select.POLLIN)
        if self.failure is None:
            try:
                self._turn()
                waits.register(self.context.fileno(), select.POLLIN)
            except Exception as error:  # of any kind: tasks must not wait for ever
                self._fail(error)
        waits.poll(self._quiet_ns / 1e6 if self._tasks else None)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)


def _failed(task: MeshTask) -> JobFailedError:
    return JobFailedError(f"{task.name}: {task.failure}")
