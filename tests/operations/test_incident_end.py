"""An incident ends when asked to, even if its page or its agents fail."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.client import ControlError
from operations.incident import page, solving, tools
from operations.incident.server import Server
from operations.incident.session import IncidentSession
from tests.helpers.incidents import hiding, one_of, session

CALLED_S = 0.1


@contextmanager
def serving(opened: IncidentSession) -> Iterator[Server]:
    loop = asyncio.new_event_loop()
    try:
        yield Server(opened, loop)
    finally:
        loop.close()


def ask(server: Server, **request: Any) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []
    server.handle({"id": 1, **request}, answers.append)
    return answers[0]


def test_a_reason_that_is_no_unicode_is_on_the_page_without_the_bytes_that_are_none(tmp_path) -> None:
    """A command line's byte that is no UTF-8 reaches Python as a lone surrogate."""
    with session(hiding(), tmp_path, CALLED_S) as opened, serving(opened) as server:
        answer = ask(server, op="answer", named=["none"], because="caf\udce9")
        assert answer["ok"], answer
        assert server.closed
        assert "Because: caf?" in (opened.directory.path / page.PAGE).read_text()


def test_an_incident_whose_page_cannot_be_written_is_over(tmp_path) -> None:
    with session(hiding(), tmp_path, CALLED_S) as opened, serving(opened) as server:
        (opened.directory.path / page.PAGE).mkdir()
        answer = ask(server, op="end")
        assert [one for one in answer["result"]["not_written"] if page.PAGE in one], answer
        assert server.closed


def test_an_incident_whose_tool_has_a_defect_ends_with_its_truth(tmp_path, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise KeyError("a defect")

    with session(hiding(one_of("denied-path")), tmp_path, CALLED_S) as opened, serving(opened) as server:
        monkeypatch.setattr(solving, "shown_by", broken)
        monkeypatch.setattr(opened.live, "close", broken)
        answer = ask(server, op="end")
        assert [one["kind"] for one in answer["result"]["truth"]] == ["denied-path"]
        assert "a defect" in answer["result"]["not_written"][0]
        assert server.closed


def test_an_incident_whose_agents_do_not_answer_ends_without_their_evidence(tmp_path, monkeypatch) -> None:
    def gone(_client: object, op: str, **_: object) -> Any:
        raise ControlError(f"no agent answers {op}")

    with session(hiding(one_of("denied-path")), tmp_path, CALLED_S) as opened, serving(opened) as server:
        monkeypatch.setattr(tools, "call", gone)
        paths = ask(server, op="do", tool="paths", arguments={"source": "h0", "destination": "h2"})
        assert paths["error"] == "no agent answers denylist.get"
        ask(server, op="do", tool="wait", arguments={"seconds": 0.1}, words="wait 0.1")
        answer = ask(server, op="end")
        assert answer["ok"], answer
        assert [one["shows"] for one in answer["result"]["evidence"]] == [""]
        assert [one.words for one in opened.asked] == ["wait 0.1"]
        assert server.closed
