"""How long a P4Runtime message may be: what the loaded program can hold, and not more.

A message that is longer cannot be carried out, and reading it would cost memory and time on behalf of any client.
"""

from switch.p4rt.p4info import FieldInfo, P4Info
from switch.p4rt.translation import NAME_BYTES_MAX

MESSAGE_BYTES_MAX = 32 << 20
"""Of any message: a program of 24 MiB with its P4Info (`SetForwardingPipelineConfig`)."""
REQUEST_BYTES_MAX = 4 << 20
"""Of a Write or Read request, also where the program could hold more: gRPC's own limit. Each two bytes may become an
object of 60, so such a request takes at most 130 MB."""
UPDATES_MAX = 1 << 14
"""Of the updates in one Write: half a second of the server, in which it answers no one. Each error takes 2 KB."""
UNDONE_MAX = 1 << 16
"""Of the objects that a Write with ROLLBACK_ON_ERROR changes: each is kept as a message until the batch ends."""
FIELDS_MAX = 64
"""Of the top-level fields in a request to set a pipeline, and in its config: several times as many as are defined."""
MESSAGE_BYTES_MIN = 1 << 20
"""Always allowed: requests about a switch without a program, and a batch that changes the same entries many times."""
STREAM_BYTES_MAX = 1 << 16
"""Of a message on the stream: a frame with its metadata, an election, an acknowledgement."""
ASIDE_BYTES = 1 << 16
"""Longer messages are parsed in another thread, while the server goes on answering."""
WILDCARDS_MAX = 256
"""Of the entities in one Read, those that select more than one object. Each may cost a look at all objects."""
REFUSED_MAX = 1024
"""Of the entities in one Read. Their errors travel as metadata, in which a client by default takes about 270."""
_ENTRY_BYTES = 96  # tags, lengths, counters, metadata
_FIELD_BYTES = 32  # of a match field or a parameter, beside its value
_ENTRIES = 1 << 14  # of a table or profile without a size


def write_bytes_max(p4info: P4Info) -> int:
    """The longest Write or Read request for this program, if that is less than REQUEST_BYTES_MAX, and the longest
    answer beside the first wildcard of each kind: each table's size times its largest entry, and the arrays."""
    total = 0
    for table in p4info.tables.values():
        values = sum(_FIELD_BYTES + 2 * _bytes(field) for field in table.fields)
        actions = [sum(_FIELD_BYTES + _bytes(p) for p in action.params) for action in table.actions.values()]
        total += (table.size or _ENTRIES) * (_ENTRY_BYTES + values + max(actions, default=0))
    for array in (*p4info.counters.values(), *p4info.meters.values(), *p4info.registers.values()):
        total += array.size * (_ENTRY_BYTES + array.bits // 8)
    for profile in p4info.profiles.values():
        total += (profile.size or _ENTRIES) * (_ENTRY_BYTES + (profile.max_group_size or 1) * _FIELD_BYTES)
    for value_set in p4info.value_sets.values():
        total += value_set.size * sum(_FIELD_BYTES + _bytes(field) for field in value_set.fields)
    return min(max(total, MESSAGE_BYTES_MIN), MESSAGE_BYTES_MAX)


def _bytes(field: FieldInfo) -> int:
    return field.bits // 8 if field.bits else NAME_BYTES_MAX
