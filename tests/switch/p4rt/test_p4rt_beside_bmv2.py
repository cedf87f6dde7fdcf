"""One conversation with our server and with simple_switch_grpc: `beside_bmv2.txt` has both answers to each update.

`UPDATE_GOLDEN=1 pytest tests/switch/p4rt/test_p4rt_beside_bmv2.py` rewrites the answers; a new difference needs a
reason in the file.
"""

import os
import shutil
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path

import grpc
import pytest
from google.rpc import code_pb2

from p4c.frontend import compile_program
from tests.helpers.switch_process import serving, simple_switch
from tests.switch.p4rt.conftest import Client

PROGRAM = Path(__file__).parent / "everything.p4"
CONVERSATION = Path(__file__).parent / "beside_bmv2.txt"


def cases():
    """Title, update, the code of each server, and why they differ."""
    rows = [line for line in CONVERSATION.read_text().splitlines() if not line.startswith("#")]
    for row, following in zip_longest(rows, rows[1:], fillvalue=""):
        if not row.startswith(" "):
            title, codes, update = row.split(": ", 2)
            ours, _, bmv2 = codes.partition(", bmv2 ")
            yield title, update, {"ours": ours, "bmv2": bmv2 or ours}, following.strip() * following.startswith(" ")


def row(title, update, codes, why):
    differs = f", bmv2 {codes['bmv2']}" if codes["bmv2"] != codes["ours"] else ""
    return f"{title}: {codes['ours']}{differs}: {update}\n" + (f"    {why}\n" if why else "")


@contextmanager
def ours(directory):
    with serving(directory, [{"device_id": 1, "name": "one"}]) as words:
        yield words["grpc"]


def converse(address, compiled, updates, errors_of):
    """The code that each update is answered with."""
    answers = []
    with closing(Client(address)) as client:
        client.primary()
        client.set_pipeline(device_config=compiled.json_text.encode(), info=compiled.p4info_text)
        for update in updates:
            try:
                client.write(update)
                answers.append("OK")
            except grpc.RpcError as error:
                answers.append(code_pb2.Code.Name(errors_of(error)[0][0]))
    return answers


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("ours", ours),
        pytest.param(
            "bmv2",
            simple_switch,
            marks=[
                pytest.mark.bmv2,
                pytest.mark.skipif(not shutil.which("simple_switch_grpc"), reason="simple_switch_grpc is not on PATH"),
            ],
        ),
    ],
)
def test_every_update_is_answered_as_written_down(name, server, tmp_path, errors_of):
    updates = [update for _, update, _, _ in cases()]
    with server(tmp_path) as address:
        actual = converse(address, compile_program(PROGRAM), updates, errors_of)
    if os.environ.get("UPDATE_GOLDEN"):
        told = [
            row(title, update, {**codes, name: one}, why)
            for (title, update, codes, why), one in zip(cases(), actual, strict=True)
        ]
        head = [line for line in CONVERSATION.read_text().splitlines(keepends=True) if line.startswith("#")]
        CONVERSATION.write_text("".join(head + told))
    expected = [(title, codes[name]) for title, _, codes, _ in cases()]
    assert [(title, answer) for (title, _), answer in zip(expected, actual, strict=True)] == expected


def test_every_difference_has_a_reason():
    for title, _, codes, why in cases():
        assert (codes["ours"] == codes["bmv2"]) == (not why), title
