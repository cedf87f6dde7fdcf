"""One conversation with our server and with simple_switch_grpc: `beside_bmv2.txt` has both answers to each update.

`UPDATE_GOLDEN=1 pytest tests/switch/p4rt/test_p4rt_beside_bmv2.py` rewrites the answers; a new difference needs a
reason in the file.
"""

import os
import queue
import shutil
from contextlib import contextmanager
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
    for block in CONVERSATION.read_text().strip().split("\n\n")[1:]:
        lines = block.split("\n")
        answers = dict(line.split(": ", 1) for line in lines[2:])
        if "both" in answers:
            answers["ours"] = answers["bmv2"] = answers.pop("both")
        yield lines[0].removeprefix("# "), lines[1], answers


def block(title, update, answers):
    if answers["ours"] == answers["bmv2"]:
        answers = {"both": answers["ours"]}
    return "\n".join([f"# {title}", update, *(f"{who}: {said}" for who, said in answers.items())])


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
    updates = [update for _, update, _ in cases()]
    with server(tmp_path) as address:
        actual = converse(address, compile_program(PROGRAM), updates)
    if os.environ.get("UPDATE_GOLDEN"):
        told = [
            (title, update, {**answers, name: one})
            for (title, update, answers), one in zip(cases(), actual, strict=True)
        ]
        head = CONVERSATION.read_text().split("\n\n")[0]
        CONVERSATION.write_text("\n\n".join([head, *(block(*one) for one in told)]) + "\n")
    expected = [(title, answers[name]) for title, _, answers in cases()]
    assert [(title, answer) for (title, _), answer in zip(expected, actual, strict=True)] == expected


def test_every_difference_has_a_reason():
    for title, _, answers in cases():
        assert (answers["ours"] == answers["bmv2"]) == ("why" not in answers), title
