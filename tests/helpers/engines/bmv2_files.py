"""simple_switch reading and writing pcap files: no interfaces, no root, frames of any length.

All input files are written first; one more input is a FIFO without packets, which holds the switch back until it is
closed: simple_switch merges its inputs by time, so it waits for the first packet of each.
"""

import os
import re
import select
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from p4c.entries import ActionCall, Entry, Exact, Lpm, MemberRef, Range, Ternary
from p4c.model import Program
from switch.engine import Replica, Transmitted
from tests.helpers import pcap
from tests.helpers.waiting import ran

GATE = 63  # the port of the FIFO
GAP_US = 20_000  # between packets, in the files and, as simple_switch plays them, in real time


class Bmv2Files:
    """The methods of `switch.engine.Engine` that packet files need. Control first, then packets, then `advance`."""

    def __init__(self, program_json: bytes, directory: Path, ports: Sequence[int] = range(11)) -> None:
        self.directory = directory
        self.ports = ports
        self._json = directory / "program.json"
        self._json.write_bytes(program_json)
        self._commands: list[str] = []
        self._packets: list[tuple[int, bytes]] = []
        self._handles = 0
        self._member_handles: dict[tuple[str, int], int] = {}
        self._group_handles: dict[tuple[str, int], int] = {}
        self._nodes = 0

    # --- control, as simple_switch_CLI commands ---

    def load(self, program: Program) -> None:
        self._program = program

    def configure_port(self, *args: object) -> None:
        """Ports are as they are."""

    def _match(self, match: object) -> str:
        if isinstance(match, Exact):
            return str(match.value)
        if isinstance(match, Lpm):
            return f"{match.value:#x}/{match.prefix_len}"
        if isinstance(match, Ternary):
            return f"{match.value:#x}&&&{match.mask:#x}"
        assert isinstance(match, Range)
        return f"{match.low:#x}->{match.high:#x}"

    def insert_entry(self, table: str, entry: Entry) -> int:
        keys = " ".join(self._match(m) for m in entry.matches)
        found = self._program.table(table)
        assert found is not None
        if isinstance(entry.action, ActionCall):
            args = " ".join(map(str, entry.action.args))
            priority = f" {1000 - entry.priority}" if found.match in ("ternary", "range") else ""
            self._commands.append(f"table_add {table} {entry.action.name} {keys} => {args}{priority}")
        elif isinstance(entry.action, MemberRef):
            member = self._member_handles[found.profile.name, entry.action.member_id]  # type: ignore[union-attr]
            self._commands.append(f"table_indirect_add {table} {keys} => {member}")
        else:
            group = self._group_handles[found.profile.name, entry.action.group_id]  # type: ignore[union-attr]
            self._commands.append(f"table_indirect_add_with_group {table} {keys} => {group}")
        self._handles += 1
        return self._handles

    def set_default_action(self, table: str, action: ActionCall) -> None:
        self._commands.append(f"table_set_default {table} {action.name} {' '.join(map(str, action.args))}")

    def set_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        self._member_handles[profile, member_id] = sum(1 for p, _ in self._member_handles if p == profile)
        args = " ".join(map(str, action.args))
        self._commands.append(f"act_prof_create_member {profile} {action.name} {args}")

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        group = self._group_handles[profile, group_id] = sum(1 for p, _ in self._group_handles if p == profile)
        self._commands.append(f"act_prof_create_group {profile}")
        for member, _ in members:
            handle = self._member_handles[profile, member]
            self._commands.append(f"act_prof_add_member_to_group {profile} {handle} {group}")

    def _multicast(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self._commands.append(f"mc_mgrp_create {group_id}")
        for replica in replicas:
            self._commands.append(f"mc_node_create {replica.instance} {replica.port}")
            self._commands.append(f"mc_node_associate {group_id} {self._nodes}")
            self._nodes += 1

    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self._multicast(group_id, replicas)

    def set_clone_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int, class_of_service: int = 0
    ) -> None:
        assert truncate_bytes == class_of_service == 0, "simple_switch neither truncates clones nor gives them a class"
        self._multicast(1000 + session_id, replicas)
        self._commands.append(f"mirroring_add_mc {session_id} {1000 + session_id}")

    # --- packets ---

    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        self._packets.append((port, frame))

    def next_event_ns(self) -> int | None:
        return None

    def advance(self, now_ns: int) -> list[Transmitted]:
        """Run the switch once over everything."""
        packets, self._packets = self._packets, []
        return self._run(packets) if packets else []

    def _run(self, packets: list[tuple[int, bytes]]) -> list[Transmitted]:
        here = self.directory
        for port in self.ports:
            with (here / f"p{port}_in.pcap").open("wb") as stream:
                stream.write(pcap.HEADER)
                for i, (to, frame) in enumerate(packets):
                    if to == port:
                        stream.write(pcap.record(1, i * GAP_US, frame))
        os.mkfifo(here / f"p{GATE}_in.pcap")
        interfaces = [word for port in (*self.ports, GATE) for word in ("-i", f"{port}@p{port}")]
        command = ["setpriv", "--pdeathsig", "KILL", "simple_switch", "--use-files", "0", *interfaces]
        command += ["--thrift-port", "0", "--log-file", "log", "--log-flush", "-L", "info"]
        thrift_port = _free_port()
        command[command.index("--thrift-port") + 1] = str(thrift_port)
        command += ["--notifications-addr", f"ipc://{here}/n.ipc", str(self._json), "--", "--priority-queues", "8"]
        with subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                # For reading too: opening does not wait for a switch that has refused its program and ended.
                gate = os.open(here / f"p{GATE}_in.pcap", os.O_RDWR)
                try:
                    os.write(gate, pcap.HEADER)
                    self._control(thrift_port, process)
                finally:
                    os.close(gate)
                # Closed: the switch plays the files.
                return self._collect(len(packets))
            finally:
                process.kill()

    def _control(self, thrift_port: int, process: subprocess.Popen[bytes]) -> None:
        text = "\n".join(self._commands) + "\n"
        deadline = time.monotonic() + 20
        while True:
            done = ran(["simple_switch_CLI", "--thrift-port", str(thrift_port)], input=text)
            if done.returncode == 0 and "Could not connect" not in done.stdout + done.stderr:
                assert not re.search(r"Error|Invalid|Unknown", done.stdout), done.stdout
                return
            assert process.poll() is None, (self.directory / "log.txt").read_text()
            assert time.monotonic() < deadline, done.stdout + done.stderr
            select.select([], [], [], 0.1)

    def _collect(self, packets: int) -> list[Transmitted]:
        """What the output files hold, once they have not grown for a while."""
        quiet_until = time.monotonic() + 0.7 + packets * GAP_US / 1e6
        sizes: list[int] = []
        while time.monotonic() < quiet_until:
            select.select([], [], [], 0.05)
            now = [p.stat().st_size for p in sorted(self.directory.glob("p*_out.pcap"))]
            if now != sizes:
                sizes, quiet_until = now, max(quiet_until, time.monotonic() + 0.4)
        return [
            Transmitted(0, port, frame)
            for port in self.ports
            for frame in pcap.frames((self.directory / f"p{port}_out.pcap").read_bytes())
        ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number
