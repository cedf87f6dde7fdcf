"""Who may write: election of a primary for each (device, role).

Specification, "Client Arbitration and Controller Replication". No I/O: a client is any hashable token for its stream;
each call returns the notifications to send, in order. One `Arbitration` serves one device from its start to its crash.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from common.records import Frozen
from switch.p4rt.errors import Code, choices, denied, exhausted, invalid, not_found, unready

STREAMS_PER_ROLE_MAX = 64
ROLES_MAX = 64
"""Of one device, beside the default role. A role that had a primary is remembered without a stream, since the
specification compares later election ids with the highest that ever was, until a new role needs its place."""
ROLE_NAME_BYTES_MAX = 256

Client = Hashable


class Notification(Frozen):
    """A MasterArbitrationUpdate for `client`. `election_id` is the highest that ever was primary, None before any."""

    client: Client
    role: str
    election_id: int | None
    status: Code


@dataclass(slots=True)
class _Role:
    clients: dict[Client, int | None] = field(default_factory=dict)  # live streams with their election ids
    highest: int | None = None
    primary: Client | None = None


class Arbitration:
    def __init__(self) -> None:
        self._roles: dict[str, _Role] = {}  # those without a stream in the order in which their last one ended
        self._role_of: dict[Client, str] = {}

    def update(self, client: Client, role: str, election_id: int | None) -> list[Notification]:
        """A MasterArbitrationUpdate of `client`. Raises P4RuntimeError, with which its stream must end."""
        known = self._role_of.get(client)
        if known is not None and known != role:
            raise unready(f"role {role!r} differs from {known!r}, with which this stream began; open another stream")
        state = self._roles.get(role) or self._new_role(role)
        if election_id is not None:
            for other, taken in state.clients.items():
                if other != client and taken == election_id:
                    raise invalid(
                        f"election id {election_id} is in use by another live controller of role {role!r}; "
                        f"in use: {choices(sorted(i for i in state.clients.values() if i is not None))}"
                    )
        if known is None and len(state.clients) >= STREAMS_PER_ROLE_MAX:
            raise exhausted(f"role {role!r}: there are {STREAMS_PER_ROLE_MAX} streams already, the most")
        self._roles[role] = state
        self._role_of[client] = role
        state.clients[client] = election_id
        was_primary = state.primary == client
        if election_id is not None and (state.highest is None or election_id >= state.highest):
            state.highest = election_id
            state.primary = client
            # Others first, then the new primary (rule 1.2 of the specification's second list).
            return self._notify(role, [c for c in state.clients if c != client] + [client])
        if was_primary:
            state.primary = None
            return self._notify(role, list(state.clients))
        return self._notify(role, [client])

    def _new_role(self, role: str) -> _Role:
        """A role that nothing is known about. It takes the place of the one without a stream for longest if need be.

        Raises P4RuntimeError when every role has a stream.
        """
        size = len(role.encode())
        if size > ROLE_NAME_BYTES_MAX:
            raise invalid(f"a role's name must have at most {ROLE_NAME_BYTES_MAX} bytes (got {size})")
        named = self._roles.keys() - {""}
        if role and len(named) >= ROLES_MAX:
            idle = next((name for name, state in self._roles.items() if name and not state.clients), None)
            if idle is None:
                raise exhausted(f"a device must have at most {ROLES_MAX} roles: there is no room for {role!r}")
            del self._roles[idle]
        return _Role()

    def disconnect(self, client: Client) -> list[Notification]:
        """The stream ended. Nothing to do for a client that never sent an update."""
        role = self._role_of.pop(client, None)
        if role is None:
            return []
        state = self._roles[role]
        del state.clients[client]
        if not state.clients:
            del self._roles[role]
            if state.highest is not None:
                self._roles[role] = state  # now the last of those without a stream
        if state.primary != client:
            return []
        state.primary = None
        return self._notify(role, list(state.clients))

    def _notify(self, role: str, clients: list[Client]) -> list[Notification]:
        state = self._roles[role]
        backup = Code.NOT_FOUND if state.primary is None else Code.ALREADY_EXISTS
        return [
            Notification(client, role, state.highest, Code.OK if client == state.primary else backup)
            for client in clients
        ]

    def check_write(self, role: str, election_id: int | None) -> None:
        """Raises P4RuntimeError unless (role, election id) is the primary's: NOT_FOUND, PERMISSION_DENIED."""
        state = self._roles.get(role)
        if state is None and role:
            known = choices(repr(name) for name in self._roles)
            raise not_found(f"no controller has role {role!r}; roles: {known}")
        if state is None or state.primary is None:
            raise denied(
                "there is no primary controller; open a StreamChannel and send a MasterArbitrationUpdate first"
            )
        if election_id is None or election_id != state.clients[state.primary]:
            raise denied(f"election id {election_id} is not the primary's, which is {state.highest}")

    def is_primary(self, client: Client) -> bool:
        role = self._role_of.get(client)
        return role is not None and self._roles[role].primary == client

    def primaries(self) -> list[Client]:
        """Of every role: those to whom packet-ins go."""
        return [state.primary for state in self._roles.values() if state.primary is not None]
