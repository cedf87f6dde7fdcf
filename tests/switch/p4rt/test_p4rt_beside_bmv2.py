"""One conversation with our server and with simple_switch_grpc: `beside_bmv2.txt` has both answers to each update.

`UPDATE_GOLDEN=1 pytest tests/switch/p4rt/test_p4rt_beside_bmv2.py` rewrites the answers; a new difference needs a
reason in the file.
"""

import os
import queue
import shutil
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import text_format
from google.rpc import code_pb2, status_pb2

from p4c.frontend import compile_program
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from tests.helpers.p4.stub import P4RuntimeStub
from tests.helpers.switch_process import serving, simple_switch

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


def converse(address, compiled, updates):
    """The code that each update is answered with."""
    requests: queue.Queue[Any] = queue.Queue()
    with grpc.insecure_channel(address) as channel:
        stub = P4RuntimeStub(channel)
        stream = stub.StreamChannel(iter(requests.get, None))
        request = p4rt.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.low = 1
        requests.put(request)
        assert next(stream).arbitration.status.code == code_pb2.OK
        request = p4rt.SetForwardingPipelineConfigRequest(device_id=1, action="VERIFY_AND_COMMIT")
        request.election_id.low = 1
        text_format.Parse(compiled.p4info_text, request.config.p4info)
        request.config.p4_device_config = compiled.json_text.encode()
        stub.SetForwardingPipelineConfig(request)
        answers = []
        for update in updates:
            request = p4rt.WriteRequest(device_id=1)
            request.election_id.low = 1
            text_format.Parse(update, request.updates.add())
            try:
                stub.Write(request)
                answers.append("OK")
            except grpc.RpcError as error:
                details = dict(error.trailing_metadata()).get("grpc-status-details-bin")
                detail = p4rt.Error()
                assert status_pb2.Status.FromString(details).details[0].Unpack(detail)
                answers.append(code_pb2.Code.Name(detail.canonical_code))
        requests.put(None)
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
def test_every_update_is_answered_as_written_down(name, server, tmp_path):
    updates = [update for _, update, _, _ in cases()]
    with server(tmp_path) as address:
        actual = converse(address, compile_program(PROGRAM), updates)
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
