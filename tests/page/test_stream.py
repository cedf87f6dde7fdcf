"""The stream of events as viewers take it: resumed where it broke, ended when all is told, dropped when not read."""

import asyncio
import json
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from page import feed as feeds, site as sites
from page.feed import Feed
from page.site import Site, look

Message = MutableMapping[str, Any]


def site_of(folder: Path, count: int) -> tuple[Site, Feed]:
    """A site with one finished run of so many lines."""
    (folder / "journal").mkdir()
    lines = [json.dumps({"t_ns": t, "node": "h0", "kind": "step"}) + "\n" for t in range(count)]
    (folder / "journal" / "h0.jsonl").write_text("".join(lines))
    (folder / "verdict.json").write_text("{}")
    feed = Feed(folder)
    assert look(feed)
    return Site(b"{}", [feed], lambda asked: {"ok": True}), feed


def told(site: Site, last_id: str = "") -> bytes:
    """Everything that a viewer with this id is sent."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(site.stream(0, last_id, send))
    return b"".join(message.get("body", b"") for message in sent)


def times(body: bytes) -> list[int]:
    parts = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: [")]
    return [line["t_ns"] for part in parts for line in json.loads(part)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (feeds, sites):
        monkeypatch.setattr(module, "BATCH_LINES", 4)


def test_a_new_viewer_is_told_everything_once_and_then_the_end(tmp_path: Path, small: None) -> None:
    site, feed = site_of(tmp_path, 10)
    body = told(site)
    assert times(body) == list(range(10))
    assert body.startswith(b"retry: 500\nevent: begin\n")
    assert body.endswith(f"id: {feed.epoch}-10\ndata: ".encode() + feed.batch(8) + b"\n\nevent: end\ndata: {}\n\n")


@pytest.mark.parametrize("seen", range(11))
def test_a_viewer_that_comes_back_is_told_the_rest(tmp_path: Path, small: None, seen: int) -> None:
    site, feed = site_of(tmp_path, 10)
    body = told(site, f"{feed.epoch}-{seen}")
    assert times(body) == list(range(seen, 10))
    assert b"event: begin" not in body


def test_a_viewer_of_another_server_begins_anew(tmp_path: Path) -> None:
    site, _ = site_of(tmp_path, 3)
    body = told(site, "0badcafe-2")
    assert b"event: begin" in body
    assert times(body) == [0, 1, 2]


def test_a_viewer_that_reads_nothing_is_dropped_and_others_are_served(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sites, "SLOW_S", 0.05)
    site, _ = site_of(tmp_path, 3)

    async def never(message: Message) -> None:
        if message.get("body"):
            await asyncio.Event().wait()

    async def both() -> bytes:
        sent: list[bytes] = []

        async def send(message: Message) -> None:
            sent.append(message.get("body", b""))

        await asyncio.gather(site.stream(0, "", never), site.stream(0, "", send))
        return b"".join(sent)

    assert times(asyncio.run(both())) == [0, 1, 2]
    assert times(told(site)) == [0, 1, 2]  # and it may come back


def test_too_many_viewers_are_asked_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "VIEWERS_MAX", 0)
    site, _ = site_of(tmp_path, 1)
    assert b"viewers are connected" in told(site)
