"""A program that is refused leaves the device as it was."""

from pathlib import Path
from typing import Any

import pytest

from p4c.entries import ActionCall, Entry, Range
from p4c.model import Program, load_program
from switch.engine import EngineError
from switch.p4rt import server
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.p4info import parse_p4info_text
from switch.p4rt.pipeline import PipelineCache
from tests.helpers.p4.made import Made
from tests.helpers.p4.programs import ENGINES, engine

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
