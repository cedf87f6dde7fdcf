"""Forwarding pipelines: verify, commit, get, sharing; and what a crash leaves."""

import gc
from pathlib import Path
from typing import Any

import grpc
import pytest

from p4c.entries import ActionCall, Entry, Range
from p4c.model import Program, load_program
from switch.engine import EngineError
from switch.p4rt import server
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.p4info import parse_p4info_text
from switch.p4rt.pipeline import PipelineCache, _unwrapped
from switch.p4rt.store import loaded
from tests.helpers.p4.made import Made
from tests.helpers.p4.programs import ENGINES, engine

GET = p4rt.GetForwardingPipelineConfigRequest
HOST = (
    'type: INSERT entity { table_entry { table_id: 33554433 match { field_id: 1 exact { value: "\\002" } } '
    "action { action { action_id: 16777218 } } } }"
)


def refusal(call, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **kwargs)
    return caught.value.code().name, caught.value.details()


def get(client, response_type=GET.ALL, device_id=1):
    return client.stub.GetForwardingPipelineConfig(GET(device_id=device_id, response_type=response_type))


def test_only_the_primary_may_set_a_pipeline_or_write(harness):
    client = harness.client()
    assert refusal(client.set_pipeline)[0] == "PERMISSION_DENIED"
    assert refusal(client.set_pipeline, device_id=9) == ("NOT_FOUND", "no device with id 9; devices: 1 (s1), 2 (s2)")
    client.primary(election_id=5)
    code, message = refusal(client.set_pipeline, election_id=4)
    assert (code, message) == ("PERMISSION_DENIED", "election id 4 is not the primary's, which is 5")
    client.set_pipeline(election_id=5)
    assert refusal(client.write, HOST, election_id=6)[0] == "PERMISSION_DENIED"
    client.write(HOST, election_id=5)


def test_without_a_pipeline_reads_and_writes_fail_and_get_is_empty(harness):
    client = harness.client()
    client.primary()
    assert refusal(client.write, HOST) == (
        "FAILED_PRECONDITION",
        "device s1 has no forwarding pipeline; set one with SetForwardingPipelineConfig",
    )
    assert refusal(client.read, "table_entry { }")[0] == "FAILED_PRECONDITION"
    assert not get(client).HasField("config")


def test_verify_checks_everything_and_changes_nothing(client, engine, harness):
    client.write(HOST)
    client.set_pipeline(action="VERIFY", cookie=99)
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1
    assert not get(client).config.HasField("cookie")
    code, message = refusal(client.set_pipeline, action="VERIFY", device_config=b"{}")
    assert (code, message) == ("INVALID_ARGUMENT", "pipeline config: p4_device_config: is not a program")
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1


def test_a_commit_starts_with_empty_tables(client, engine):
    client.write(HOST)
    client.set_pipeline()
    assert client.read("table_entry { table_id: 33554433 }") == []
    assert [key for key in engine.entries if key[0] == "ingress.hosts"] == []


def test_a_refused_pipeline_leaves_the_old_one_in_place(client):
    client.write(HOST)
    request = p4rt.SetForwardingPipelineConfigRequest(device_id=1)
    request.election_id.low = 1
    request.action = p4rt.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    assert refusal(client.stub.SetForwardingPipelineConfig, request) == (
        "INVALID_ARGUMENT",
        "pipeline config: is missing",
    )
    request.config.p4_device_config = b"#"
    assert refusal(client.stub.SetForwardingPipelineConfig, request)[1] == "pipeline config: p4info is missing"
    request.config.p4info.SetInParent()
    request.config.ClearField("p4_device_config")
    _, message = refusal(client.stub.SetForwardingPipelineConfig, request)
    assert message == "pipeline config: p4_device_config is missing; it must be the program as BMv2 JSON"
    request.config.p4_device_config = b"#"
    table = request.config.p4info.tables.add()
    table.preamble.id, table.preamble.name = 1, "ingress.ghost"
    _, message = refusal(client.stub.SetForwardingPipelineConfig, request)
    assert message == "pipeline config: P4Info's table ingress.ghost is not in the program: none"
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1


def test_what_stops_the_compiler_reaches_the_controller_and_the_old_pipeline_stays(harness, client, monkeypatch):
    client.write(HOST)

    def prepare(program):
        raise RuntimeError("cc: not found")

    monkeypatch.setattr(harness.data_plane, "prepare", prepare)
    assert refusal(client.set_pipeline) == (
        "INTERNAL",
        "pipeline config: the program cannot be prepared: cc: not found",
    )
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1


def test_an_unspecified_action_says_which_there_are(client):
    code, message = refusal(client.set_pipeline, action="UNSPECIFIED")
    assert (code, message) == (
        "INVALID_ARGUMENT",
        "pipeline action 0 must be one of VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT, RECONCILE_AND_COMMIT",
    )


# --- VERIFY_AND_SAVE and COMMIT: the specification's sentences, "SetForwardingPipelineConfig RPC" --------------------


def commit(client, config=False):
    request = p4rt.SetForwardingPipelineConfigRequest(device_id=1, action="COMMIT")
    request.election_id.low = 1
    if config:
        request.config.cookie.cookie = 1
    client.stub.SetForwardingPipelineConfig(request)


def hosts(engine):
    return [key for key in engine.entries if key[0] == "ingress.hosts"]


def test_a_saved_pipeline_changes_no_forwarding_state_but_reads_and_writes_refer_to_it(client, engine):
    client.write(HOST)
    client.set_pipeline(action="VERIFY_AND_SAVE")
    assert client.read("table_entry { table_id: 33554433 }") == []
    client.write(HOST)
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1
    assert len(hosts(engine)) == 1
    other = HOST.replace("002", "003")
    client.write(other)
    assert len(hosts(engine)) == 1
    commit(client)
    assert len(hosts(engine)) == len(client.read("table_entry { table_id: 33554433 }")) == 2
    client.write(HOST.replace("INSERT", "DELETE"))
    assert len(hosts(engine)) == 1


def test_a_commit_replays_what_was_done_of_a_write_that_failed(client, engine):
    client.set_pipeline(action="VERIFY_AND_SAVE")
    with pytest.raises(grpc.RpcError):
        client.write(HOST, HOST)
    commit(client)
    assert len(hosts(engine)) == 1


def test_a_commit_needs_a_saved_pipeline_and_no_config(client):
    assert refusal(commit, client)[0] == "NOT_FOUND"
    assert refusal(commit, client, config=True)[0] == "INVALID_ARGUMENT"
    client.set_pipeline(action="VERIFY_AND_SAVE")
    assert refusal(commit, client, config=True)[0] == "INVALID_ARGUMENT"
    commit(client)
    assert refusal(commit, client)[0] == "NOT_FOUND"
    client.set_pipeline(action="VERIFY_AND_SAVE")
    client.set_pipeline()
    assert refusal(commit, client)[0] == "NOT_FOUND"
    request = p4rt.SetForwardingPipelineConfigRequest(device_id=1, action="VERIFY_AND_SAVE")
    request.election_id.low = 1
    assert refusal(client.stub.SetForwardingPipelineConfig, request)[0] == "INVALID_ARGUMENT"


def test_a_pipeline_with_arrays_too_large_to_keep_twice_is_not_saved(client, monkeypatch):
    monkeypatch.setattr("switch.p4rt.saved.CELLS_COPIED_MAX", 3)
    code, message = refusal(client.set_pipeline, action="VERIFY_AND_SAVE")
    assert code == "RESOURCE_EXHAUSTED"
    assert message.startswith("a saved pipeline must have at most 3 cells of arrays (got ")


def test_writes_to_a_saved_pipeline_are_kept_up_to_the_longest_message(client, harness, monkeypatch):
    client.set_pipeline(action="VERIFY_AND_SAVE")
    client.write(HOST)
    monkeypatch.setattr(harness.server._saved[1].pipeline, "message_bytes_max", 60)
    assert refusal(client.write, HOST.replace("002", "003"))[0] == "RESOURCE_EXHAUSTED"


def test_a_crash_forgets_the_saved_pipeline(client, harness):
    client.set_pipeline(action="VERIFY_AND_SAVE")
    harness.devices.crash(1)
    client.primary()
    assert refusal(commit, client)[0] == "NOT_FOUND"


# --- the envelope of p4lang's tutorials ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2, 3], ids=["without reassign", "with reassign"])
def test_a_program_may_come_in_a_p4_device_config(number):
    """p4.tmp.P4DeviceConfig of p4lang's PI: `extras` and `device_data`; later versions begin with `reassign`."""
    program = b'{"a": 1}'
    envelope = (b"\x08\x01" if number == 3 else b"") + bytes((number << 3 | 2, len(program))) + program
    assert _unwrapped(envelope) == _unwrapped(program) == program
    assert _unwrapped(b"\xff{") == b"\xff{"


def test_reconcile_keeps_the_entries_of_the_pipeline_that_is_loaded(client):
    client.write(HOST)
    client.set_pipeline(action="RECONCILE_AND_COMMIT", cookie=7)
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1
    assert get(client, GET.COOKIE_ONLY).config.cookie.cookie == 7
    code, _ = refusal(client.set_pipeline, action="RECONCILE_AND_COMMIT", device_config=b"# another\n")
    assert code == "INVALID_ARGUMENT"


def test_get_returns_exactly_what_was_set_and_only_what_was_asked_for(client):
    client.set_pipeline(cookie=0xC0FFEE)
    config = get(client).config
    assert config.p4info.pkg_info.name == "kinds"
    assert config.p4_device_config.startswith(b"# A pipeline with one table of every kind")
    assert config.cookie.cookie == 0xC0FFEE
    for response_type, p4info, device_config in (
        (GET.COOKIE_ONLY, False, False),
        (GET.P4INFO_AND_COOKIE, True, False),
        (GET.DEVICE_CONFIG_AND_COOKIE, False, True),
    ):
        config = get(client, response_type).config
        assert (config.HasField("p4info"), bool(config.p4_device_config)) == (p4info, device_config)
        assert config.cookie.cookie == 0xC0FFEE
    assert refusal(get, client, device_id=3)[0] == "NOT_FOUND"


def test_devices_with_the_same_pipeline_share_one_program(harness):
    client = harness.client()
    for device_id in (1, 2):
        client.primary(device_id)
        client.set_pipeline(device_id)
    one, two = (loaded(harness.devices.find(device_id)) for device_id in (1, 2))
    assert one is not None
    assert two is not None
    assert one.pipeline is two.pipeline
    assert harness.data_plane.engines[1].program is harness.data_plane.engines[2].program
    client.write(HOST)
    assert client.read("table_entry { table_id: 33554433 }", device_id=2) == []


def test_a_pipeline_that_no_device_runs_is_forgotten(store):
    config = store.pipeline.config_bytes(p4info=True, device_config=True)
    loaded = []

    def load(data):
        loaded.append(data)
        return store.pipeline.program

    cache = PipelineCache(load)
    first = cache.read(config)
    assert cache.read(config) is first
    assert len(loaded) == 1
    del first
    gc.collect()
    cache.read(config)
    assert len(loaded) == 2


# --- crash and stop -------------------------------------------------------------------------------------------------


def test_after_a_crash_streams_have_ended_election_ids_are_forgotten_and_there_is_no_pipeline(harness):
    client = harness.client()
    stream = client.primary(election_id=9)
    client.set_pipeline(election_id=9)
    client.write(HOST, election_id=9)
    other = client.primary(device_id=2, election_id=9)
    harness.devices.crash(1)
    assert stream.code() == ("UNAVAILABLE", "device s1 was crashed")
    assert harness.data_plane.running[1] is False
    assert harness.data_plane.engines[1].program is None
    assert not get(client).HasField("config")
    assert refusal(client.read, "table_entry { }")[0] == "FAILED_PRECONDITION"
    harness.devices.start(1)
    assert harness.data_plane.running[1] is True
    client.primary(election_id=1)  # lower than before: a full restart forgets
    client.set_pipeline()
    assert client.read("table_entry { table_id: 33554433 }") == []
    other.arbitrate(10)
    assert other.next().arbitration.election_id.low == 10  # the other device noticed nothing


def test_a_stopped_device_keeps_its_session_and_its_tables(harness, client):
    client.write(HOST)
    harness.devices.stop(1)
    assert harness.data_plane.running[1] is False
    assert harness.devices.find(1).describe()["state"] == "stopped"
    assert len(client.read("table_entry { table_id: 33554433 }")) == 1
    client.write(HOST.replace("002", "003"))
    harness.devices.start(1)
    description = harness.devices.find(1).describe()
    assert (description["state"], description["program"], description["entries"]) == ("running", "kinds", 4)


def test_a_removed_device_is_unknown_and_its_streams_end(harness):
    client = harness.client()
    stream = client.primary()
    harness.devices.remove(1)
    assert stream.code() == ("UNAVAILABLE", "device s1 was removed")
    assert refusal(client.set_pipeline) == ("NOT_FOUND", "no device with id 1; devices: 2 (s2)")


TABLE = "action n() {{ }} table t {{ key = {{ m.x: range; }} actions = {{ n; }} {entries} }}"
ENTRY = Entry((Range(1, 2),), ActionCall("I.n"), 1)


def compiled(directory: Path, entries: str) -> tuple[str, bytes]:
    done = Made(directory, local=TABLE.format(entries=entries), ingress="t.apply();").compiled
    return done.p4info_text, done.json_text.encode()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    return compiled(tmp_path_factory.mktemp("good"), "size = 16;")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """The compiler refuses a range that is empty, so the program is damaged afterwards."""
    p4info, data = compiled(tmp_path_factory.mktemp("bad"), "const entries = { 3..5 : n(); }")
    whole, empty = (b'"start": "%s"' % start for start in (b"0x03", b"0x09"))
    assert data.count(whole) == 1
    return p4info, data.replace(whole, empty)


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_that_refuses_a_program_keeps_the_one_that_it_runs(kind, good, bad) -> None:
    running: Any = engine(kind)
    running.load(load_program(good[1]))
    handle = running.insert_entry("I.t", ENTRY)
    with pytest.raises(EngineError, match=r"table I\.t, field m\.x: the range 0x9\.\.0x5 is empty"):
        running.load(load_program(bad[1]))
    running.delete_entry("I.t", handle)  # a table of the refused program is constant
    running.insert_entry("I.t", ENTRY)


def test_a_program_with_an_entry_that_cannot_be_is_refused_before_any_device_has_it(bad: tuple[str, bytes]) -> None:
    config = p4rt.ForwardingPipelineConfig(p4_device_config=bad[1])
    config.p4info.CopyFrom(parse_p4info_text(bad[0]).message)
    with pytest.raises(P4RuntimeError) as refused:
        PipelineCache(load_program).read(config.SerializeToString())
    assert refused.value.code == Code.INVALID_ARGUMENT
    assert refused.value.message == (
        "pipeline config: p4_device_config: table I.t, field m.x: the range 0x9..0x5 is empty"
    )


def test_an_engine_is_given_a_program_after_everything_else_was_checked(harness, monkeypatch) -> None:
    client, _ = harness.ready()
    before: Program = harness.data_plane.engines[1].program

    def refuse(*_: object) -> None:
        raise P4RuntimeError(Code.INVALID_ARGUMENT, "refused")

    monkeypatch.setattr(server, "EntityStore", refuse)
    with pytest.raises(Exception, match="refused"):
        client.set_pipeline(cookie=5)
    assert harness.data_plane.engines[1].program is before
