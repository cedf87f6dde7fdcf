"""The uverbs server of a host in virtual time: one program is served at a time, and time moves only while all wait.

Nobody knows how much virtual time a process's computing should take, so that it takes none: from the moment in which a
program is told something until it waits again in a call of the library (`CQ.wait`, `Context.sleep`), its host's time
stands still. Each program has one end of a pair of sockets instead of a name to connect to. A program that does not
come back within `answer_s` of real time ends the run, by its name.
"""

import contextlib
import os
import secrets
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common import uverbs
from endpoint.profile import NicProfile
from endpoint.transport import QueuePair, Transport
from endpoint.uverbs.channel import make_channel
from endpoint.uverbs.refusal import Violation
from endpoint.uverbs.regions import SECRET_BYTES, ProgramMemory
from endpoint.uverbs.session import ProgramMessage, Session
from endpoint.uverbs.shared_memory import describe, make_shared

ANSWER_S = 60.0
_CREDENTIALS = struct.Struct("=3i")  # process, user, group: the kernel's word with every message

Journal = Callable[[int, str, Mapping[str, Any]], None]


class ProgramStuckError(RuntimeError):
    """A program has neither ended nor waited in a call of the library for too long: virtual time cannot go on."""


class SteppedProgram:
    """A program's place in its host. `waiting`: it sleeps in a call until `until_ns`, or (None) until there is news."""

    session: Session

    def __init__(self, name: str, ours: socket.socket) -> None:
        self.name = name
        self.socket = ours
        self.process = 0
        """Who sent the last message: the process that was started may have started another one."""
        self.waiting = False
        self.gone = False
        self.until_ns: int | None = None
        self.sent = 0
        """Messages that it has been sent; one that has not taken all of them does not count as waiting."""


class SteppedUverbs:
    """`endpoint.host.Guest`: the programs of a host in virtual time."""

    def __init__(
        self,
        profile: NicProfile,
        transport: Transport,
        transport_name: str,
        *,
        journal: Journal,
        limits: uverbs.ProgramLimits | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._profile = profile
        self._transport = transport
        self._transport_name = transport_name
        self._journal = journal
        self._limits = limits or uverbs.ProgramLimits()
        self._answer_s = answer_s
        self._programs: list[SteppedProgram] = []

    def admit(self, name: str) -> tuple[SteppedProgram, socket.socket]:
        """A place for a program that is about to start, and its end of the socket. `settle` serves it first."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(self._answer_s)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        program = SteppedProgram(name, ours)
        program.session = Session(
            self._transport,
            hosts=self._profile.reachable(),
            about=lambda: describe(self._profile, self._transport, self._transport_name),
            make_memory=make_shared,
            make_channel=make_channel,
            limits=self._limits,
            memory=ProgramMemory(lambda: program.process, secrets.token_bytes(SECRET_BYTES), os.geteuid()),
        )
        self._programs.append(program)
        return program, theirs

    def settle(self, now_ns: int) -> bool:
        """Serve every program that does not wait, until all do; False if there was none such."""
        busy = [program for program in self._programs if not program.waiting]
        for program in busy:
            self._serve(program, now_ns)
        return bool(busy)

    # endpoint.host.Guest

    def step(self, now_ns: int) -> None:
        """Wake the programs that there is news for, or whose time has come, each until it waits again."""
        for program in list(self._programs):
            program.session.handle_timer(now_ns)
            if program.waiting:
                message = program.session.outgoing()
                if (
                    program.session.take_news()
                    or message is not None
                    or (program.until_ns is not None and program.until_ns <= now_ns)
                ):
                    program.waiting, program.until_ns = False, None
                    self._send(program, ProgramMessage(uverbs.pack_time(now_ns)))
                    if message is not None:
                        self._send(program, message)
                    self._serve(program, now_ns)

    def next_timer_ns(self) -> int | None:
        due = [time for program in self._programs for time in (program.until_ns, program.session.next_timer_ns())]
        return min((due_ns for due_ns in due if due_ns is not None), default=None)

    def qps(self) -> Sequence[tuple[str, QueuePair]]:
        """The queue pairs of all programs, with the names that the programs gave themselves."""
        return [
            (program.session.program, guest.qp) for program in self._programs for guest in program.session.qps.values()
        ]

    def close(self, now_ns: int) -> None:
        for program in list(self._programs):
            self._drop(program, now_ns, "the world ended")

    # sockets

    def _serve(self, program: SteppedProgram, now_ns: int) -> None:
        """Do what a program asks for until it waits or is gone. Raises `ProgramStuckError`."""
        while not program.gone:
            while not program.gone and (answer := program.session.outgoing()) is not None:
                self._send(program, answer)
            message = self._message(program)
            if not message:
                self._drop(program, now_ns, "the program ended")
                return
            try:
                if message[0] == uverbs.WAIT:
                    seen, until_ns = uverbs.unpack_wait(message)
                    if program.session.take_news():  # an event of a channel, which it may have looked for too early
                        self._send(program, ProgramMessage(uverbs.pack_time(now_ns)))
                    elif seen == program.sent:
                        program.waiting, program.until_ns = True, until_ns
                        return
                else:
                    opened = bool(program.session.program)
                    program.session.receive(message, now_ns)
                    if not opened and program.session.program:
                        self._send(program, ProgramMessage(uverbs.pack_time(now_ns)))
                        self._write(program, now_ns, "open", "")
            except (Violation, uverbs.FormatError) as error:
                with contextlib.suppress(OSError):
                    program.socket.send(uverbs.refusal(str(error)))
                self._drop(program, now_ns, str(error))

    def _message(self, program: SteppedProgram) -> bytes:
        """The next message; empty when the program has ended."""
        try:
            # With room for the credentials alone, the kernel drops descriptors that a program sends.
            message, brought, _, _ = program.socket.recvmsg(
                uverbs.MESSAGE_BYTES_MAX, socket.CMSG_LEN(_CREDENTIALS.size)
            )
            for level, kind, data in brought:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                    program.process = _CREDENTIALS.unpack(data)[0]
            return message
        except TimeoutError:
            raise ProgramStuckError(
                f"program {program.name} on {self._profile.host} has computed for more than {self._answer_s:g} s, or"
                " waits outside of the library's calls: virtual time cannot go on (docs/uverbs.md)"
            ) from None
        except OSError:
            return b""

    def _send(self, program: SteppedProgram, message: ProgramMessage) -> None:
        """A program that is gone is noticed when it is read."""
        with contextlib.suppress(OSError):
            if message.descriptor is None:
                program.socket.send(message.data)
            else:
                socket.send_fds(program.socket, [message.data], [message.descriptor])
        program.sent += 1
        if message.descriptor is not None:
            os.close(message.descriptor)

    def _drop(self, program: SteppedProgram, now_ns: int, cause: str) -> None:
        program.gone = True
        self._programs.remove(program)
        program.session.close(now_ns)
        program.socket.close()
        if program.session.program:
            self._write(program, now_ns, "close", cause)

    def _write(self, program: SteppedProgram, now_ns: int, state: str, cause: str) -> None:
        """A process id would differ from run to run of one seed."""
        self._journal(now_ns, "program", {"name": program.session.program, "pid": 0, "state": state, "cause": cause})
