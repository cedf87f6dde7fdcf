"""Every refusal's code and words, golden: `golden/*.txt` hold updates, each above what the server answers.

Each case runs alone on the state of PRELUDE. After a change of words, look at the difference that
`UPDATE_GOLDEN=1 pytest tests/switch/p4rt/test_p4rt_messages.py` makes.
"""

import os
from copy import deepcopy
from pathlib import Path

import pytest
from google.protobuf import text_format

from switch.p4rt import batch
from switch.p4rt.bindings import p4runtime_pb2 as p4rt

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))
FORWARD = 'action { action_id: 16777217 params { param_id: 1 value: "\\001" } }'
PRELUDE = [
    f'table_entry {{ table_id: 33554433 match {{ field_id: 1 exact {{ value: "\\001" }} }} action {{ {FORWARD} }} }}',
    'table_entry { table_id: 33554435 priority: 7 match { field_id: 4 exact { value: "\\001" } } '
    "action { action { action_id: 16777218 } } }",
    f"action_profile_member {{ action_profile_id: 285212673 member_id: 1 {FORWARD} }}",
    f"action_profile_member {{ action_profile_id: 285212674 member_id: 1 {FORWARD} }}",
    f"action_profile_member {{ action_profile_id: 285212674 member_id: 2 {FORWARD} }}",
    "action_profile_group { action_profile_id: 285212673 group_id: 1 max_size: 4 members { member_id: 1 weight: 1 } }",
    "table_entry { table_id: 33554436 action { action_profile_group_id: 1 } }",
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 1 } }",
]
FULL = [
    f'table_entry {{ table_id: 33554433 match {{ field_id: 1 exact {{ value: "\\{n}" }} }} action {{ {FORWARD} }} }}'
    for n in (201, 202, 203)
]


def insert(store, *entities):
    request = p4rt.WriteRequest()
    for entity in entities:
        update = request.updates.add(type=p4rt.Update.INSERT)
        text_format.Parse(entity, update.entity)
    batch.write(store, request)


def answer(store, update):
    request = p4rt.WriteRequest()
    text_format.Parse(update, request.updates.add())
    before = deepcopy((store.engine.__dict__, store.rows, store.defaults, store.profiles, store.meters))
    try:
        batch.write(store, request)
    except batch.BatchError as error:
        after = (store.engine.__dict__, store.rows, store.defaults, store.profiles, store.meters)
        assert str(after) == str(before), "a refused update changed something"
        (refusal,) = error.errors
        return str(refusal)
    return "OK"


def cases(path):
    """The comment above an update, the update and its answer, a line each."""
    lines = path.read_text().splitlines()
    for at, line in enumerate(lines):
        if line.startswith("=> "):
            comment = lines[at - 2] if at > 1 and lines[at - 2].startswith("# ") else ""
            yield comment, lines[at - 1], line.removeprefix("=> ")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_refusal_names_the_thing_the_rule_and_the_choices(path, store):
    insert(store, *PRELUDE)
    pristine = store
    actual = []
    for comment, update, _ in cases(path):
        store = deepcopy(pristine)
        if comment == "# table full":
            insert(store, *FULL)
        actual.append((comment, update, answer(store, update)))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text("".join(f"{comment}\n{update}\n=> {said}\n".lstrip("\n") for comment, update, said in actual))
    for (_, update, expected), (_, _, said) in zip(cases(path), actual, strict=True):
        assert said == expected, update
