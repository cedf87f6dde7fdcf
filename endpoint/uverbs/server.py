"""The uverbs server of a host: the socket that programs connect to, and their turns. `session.py` reads their messages.

All sockets hang on one epoll descriptor, which the driver's loop watches: it is readable when a program has said
something or when one that did not read has room again. Nothing here ever waits for a program. One that floods is read
in turn with the others, and all of them together get no more than half of the agent's time.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from common import uverbs
from common.server import Readers
from endpoint.profile import NicProfile
from endpoint.transport import QueuePair, Transport
from endpoint.uverbs.channel import make_channel
from endpoint.uverbs.refusal import Violation
from endpoint.uverbs.regions import SECRET_BYTES, ProgramMemory
from endpoint.uverbs.session import ProgramMessage, Session
from endpoint.uverbs.shared_memory import describe, make_shared

PROGRAMS_MAX = 32
_SERVED_MAX = 16  # programs in one go
_MESSAGES_MAX = 8  # of one program in one go
_SERVED_NS = 1_000_000  # after so long in one go, a program's next message is the next go's
_PAUSE_NS = 250_000  # the least after a go that left messages behind
_DESCRIPTORS_MAX = 253  # SCM_MAX_FD: room for all that a message may bring, so that the kernel drops none in our time
_CUT_SHORT = int(socket.MSG_TRUNC | socket.MSG_CTRUNC)  # enums are slow to combine, once per message
_BACKLOG_MAX = 64  # descriptors that could not be closed yet; no program is let in while there are more
_PEER_CREDENTIALS = struct.Struct("3i")

Journal = Callable[[int, str, Mapping[str, Any]], None]


class UverbsServer:
    """`endpoint.host.Guest`: the programs of a host, over sockets. Raises OSError when the socket is open already."""

    def __init__(
        self,
        profile: NicProfile,
        transport: Transport,
        transport_name: str,
        readers: Readers,
        *,
        journal: Journal,
        clock: Callable[[], int],
        limits: uverbs.ProgramLimits | None = None,
    ) -> None:
        self._profile = profile
        self._transport = transport
        self._transport_name = transport_name
        self._readers = readers
        self._journal = journal
        self._clock = clock
        self._limits = limits or uverbs.ProgramLimits()
        self._programs: dict[int, _Program] = {}
        self._hosts = profile.reachable()
        self._resume_ns: int | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            self._listener.bind(uverbs.address(profile.host))
            self._listener.listen(PROGRAMS_MAX)
        except OSError as error:
            self._listener.close()
            raise OSError(f"the uverbs socket of {profile.host} cannot be opened: {error.strerror}") from error
        self._closer = Closer()
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        readers.add_reader(self._epoll.fileno(), self.serve)

    # endpoint.host.Guest

    def step(self, now_ns: int) -> None:
        """Tell programs what has completed; read them again after a pause."""
        for program in list(self._programs.values()):
            program.session.handle_timer(now_ns)
            if program.blocked:
                program.session.step()
            else:
                self._tell(program)
        if self._resume_ns is not None and now_ns >= self._resume_ns:
            self._resume_ns = None
            self._readers.add_reader(self._epoll.fileno(), self.serve)

    def next_timer_ns(self) -> int | None:
        if not self._programs:  # asked in every turn of a host
            return self._resume_ns
        due = [program.session.next_timer_ns() for program in self._programs.values()]
        return min((due_ns for due_ns in (self._resume_ns, *due) if due_ns is not None), default=None)

    def qps(self) -> Sequence[tuple[str, QueuePair]]:
        """The queue pairs of all programs, with the names that the programs gave themselves."""
        return [
            (program.session.program, guest.qp)
            for program in self._programs.values()
            for guest in program.session.qps.values()
        ]

    def close(self, now_ns: int) -> None:
        if self._resume_ns is None:
            self._readers.remove_reader(self._epoll.fileno())
        for program in list(self._programs.values()):
            self._drop(program, "the agent ended")
        self._listener.close()
        self._epoll.close()
        self._closer.end()

    # sockets

    def serve(self) -> None:
        """Read a few messages of each program that has said something, some programs at a time."""
        started_ns = self._clock()
        for descriptor, events in self._epoll.poll(0, _SERVED_MAX):
            program = self._programs.get(descriptor)
            if program is None:
                if descriptor == self._listener.fileno():
                    self._accept()
                continue
            if program.blocked and events & select.EPOLLOUT and not self._tell(program):
                continue
            if not program.blocked and events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                for _ in range(_MESSAGES_MAX):
                    if not self._read(program) or self._clock() - started_ns > _SERVED_NS:
                        break
            elif program.blocked and events & (select.EPOLLHUP | select.EPOLLERR):
                self._drop(program, "the program ended")
        now_ns = self._clock()
        if self._epoll.poll(0, 1):
            self._readers.remove_reader(self._epoll.fileno())
            self._resume_ns = now_ns + max(now_ns - started_ns, _PAUSE_NS)

    def _accept(self) -> None:
        if self._closer.backlog > _BACKLOG_MAX:
            return
        try:
            accepted, _ = self._listener.accept()
        except OSError:
            return
        accepted.setblocking(False)
        if len(self._programs) >= PROGRAMS_MAX:
            self._last_words(accepted, f"{PROGRAMS_MAX} programs use the NIC of {self._profile.host}; end one first")
            self._closer.close(accepted.detach())
            return
        packed = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
        process, user, _ = _PEER_CREDENTIALS.unpack(packed)
        session = Session(
            self._transport,
            hosts=self._hosts,
            about=self._about,
            make_memory=make_shared,
            make_channel=make_channel,
            limits=self._limits,
            memory=ProgramMemory(lambda: process, secrets.token_bytes(SECRET_BYTES), user),
            administrator=user in (0, os.geteuid()),
        )
        program = _Program(accepted, session, process)
        self._programs[accepted.fileno()] = program
        self._epoll.register(accepted, select.EPOLLIN)

    def _read(self, program: _Program) -> bool:
        """One message; False when there is none, or none can be taken now."""
        try:
            message, brought, flags = _receive(program.socket)
        except BlockingIOError:
            return False
        except OSError:
            message, brought, flags = b"", [], 0
        for descriptor in brought:
            self._closer.close(descriptor)
        if not message:
            self._drop(program, "the program ended")
            return False
        opened = bool(program.session.program)
        try:
            if brought or flags & _CUT_SHORT:
                raise Violation(f"a message above {uverbs.MESSAGE_BYTES_MAX} bytes, or with descriptors")
            program.session.receive(message, self._clock())
        except Violation as error:
            self._last_words(program.socket, str(error))
            self._drop(program, str(error))
            return False
        if not opened and program.session.program:
            self._write(program, "open", "")
        return self._tell(program)

    def _tell(self, program: _Program) -> bool:
        """Send what there is for a program; False when it is gone or its socket is full."""
        while True:
            message = program.held or program.session.outgoing()
            program.held = None
            if message is None:
                break
            try:
                _send(program.socket, message)
            except BlockingIOError:
                program.held = message
                break
            except OSError:
                self._release(message)
                self._drop(program, "the program ended")
                return False
            self._release(message)
        blocked = program.held is not None
        if blocked != program.blocked:  # who does not read is not read: its answers would pile up
            program.blocked = blocked
            self._epoll.modify(program.socket, select.EPOLLOUT if blocked else select.EPOLLIN)
        return not blocked

    def _drop(self, program: _Program, cause: str) -> None:
        descriptor = program.socket.fileno()
        del self._programs[descriptor]
        self._epoll.unregister(descriptor)
        program.session.close(self._clock())
        if program.held is not None:
            self._release(program.held)
        # Its last messages are read, and closing descriptors in unread messages may take long.
        with contextlib.suppress(OSError):
            program.socket.shutdown(socket.SHUT_WR)
        self._closer.close(program.socket.detach())
        if program.session.program:
            self._write(program, "close", cause)

    def _release(self, message: ProgramMessage) -> None:
        if message.descriptor is not None:
            os.close(message.descriptor)

    def _last_words(self, to: socket.socket, error: str) -> None:
        with contextlib.suppress(OSError):
            to.send(uverbs.refusal(error))

    def _write(self, program: _Program, state: str, cause: str) -> None:
        fields = {"name": program.session.program, "pid": program.pid, "state": state, "cause": cause}
        self._journal(self._clock(), "program", fields)

    def _about(self) -> Mapping[str, Any]:
        return describe(self._profile, self._transport, self._transport_name)


class _Program:
    """`blocked` is a program that does not read; `held` is the message that waits until it does."""

    def __init__(self, accepted: socket.socket, session: Session, pid: int) -> None:
        self.socket = accepted
        self.session = session
        self.pid = pid
        self.held: ProgramMessage | None = None
        self.blocked = False


def _receive(source: socket.socket) -> tuple[bytes, list[int], int]:
    """One message, the descriptors that it brought, and flags."""
    return socket.recv_fds(source, uverbs.MESSAGE_BYTES_MAX, _DESCRIPTORS_MAX)[:3]


def _send(to: socket.socket, message: ProgramMessage) -> None:
    if message.descriptor is None:
        to.send(message.data)
    else:
        socket.send_fds(to, [message.data], [message.descriptor])


class Closer:
    """`backlog` descriptors are handed over and not yet closed."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[int] = SimpleQueue()
        self._given = self._closed = 0
        threading.Thread(target=self._run, name="uverbs closer", daemon=True).start()

    @property
    def backlog(self) -> int:
        return self._given - self._closed

    def close(self, descriptor: int) -> None:
        """Close it some time."""
        self._given += 1
        self._queue.put(descriptor)

    def end(self) -> None:
        """The thread ends once everything is closed."""
        self._queue.put(-1)

    def _run(self) -> None:
        while (descriptor := self._queue.get()) >= 0:
            with suppress(OSError):  # the descriptor is closed all the same: an error is that of an earlier write
                os.close(descriptor)
            self._closed += 1
