"""Who is let in: only the page itself, by the token in its address."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from page.guard import POLICY, Guard, Receive, Scope, Send

TOKEN = "s3cret-token"
HOST = (b"host", b"127.0.0.1:8000")
ORIGIN = (b"origin", b"http://127.0.0.1:8000")


class Inner:
    """An application that notes the paths for which it was asked."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def asked(
    path: str, *headers: tuple[bytes, bytes], method: str = "GET", port: int = 8000
) -> tuple[int, dict[bytes, bytes], list[str]]:
    """Status, headers, and what the application behind the guard was asked for, by whose connection is admitted."""
    inner, sent, admitted = Inner(), [], []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    state = {"admit": lambda: admitted.append(path)}
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "state": state}
    asyncio.run(Guard(inner, TOKEN, port)(scope, receive, send))
    assert len(admitted) == len(inner.paths)
    return sent[0]["status"], dict(sent[0]["headers"]), inner.paths


def test_the_token_opens_the_page_and_is_taken_off_the_path() -> None:
    status, headers, paths = asked(f"/{TOKEN}/page/main.js", HOST)
    assert (status, paths) == (200, ["/page/main.js"])
    assert headers[b"content-security-policy"] == POLICY.encode()


def test_the_page_may_load_nothing_from_elsewhere() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in POLICY
    assert all(source in ("'self'", "'none'", "data:") for rule in rules.values() for source in rule.split())


@pytest.mark.parametrize("path", ["/", f"/{TOKEN}", "/wrong/", f"/{TOKEN}x/", f"//{TOKEN}/", "/scene.json", "", "/é/"])
def test_without_the_token_there_is_nothing(path: str) -> None:
    assert asked(path, HOST)[::2] == (404, [])


@pytest.mark.parametrize(
    "host", [b"evil.example:8000", b"127.0.0.1:8001", b"127.0.0.1", b"127.0.0.1:8000.evil.example", b""]
)
def test_another_host_name_is_turned_away(host: bytes) -> None:
    assert asked(f"/{TOKEN}/", (b"host", host))[::2] == (421, [])


@pytest.mark.parametrize("name", [b"127.0.0.1", b"localhost"])
def test_at_the_port_that_browsers_leave_out_names_without_a_port_are_known(name: bytes) -> None:
    """RFC 9110, 4.2.3 and RFC 6454, 6.2: neither Host nor Origin has the scheme's default port."""
    for own in (name, name + b":80"):
        headers = (b"host", own), (b"origin", b"http://" + own)
        assert asked(f"/{TOKEN}/ask", *headers, method="POST", port=80)[::2] == (200, ["/ask"])
    assert asked(f"/{TOKEN}/", (b"host", b"evil.example"), port=80)[0] == 421
    assert (
        asked(f"/{TOKEN}/ask", (b"host", name), (b"origin", b"http://evil.example"), method="POST", port=80)[0] == 403
    )


def test_two_host_names_or_none_are_turned_away() -> None:
    assert asked(f"/{TOKEN}/", HOST, (b"host", b"evil.example"))[0] == 421
    assert asked(f"/{TOKEN}/")[0] == 421


@pytest.mark.parametrize("origin", [b"http://evil.example", b"null", b"https://127.0.0.1:8000", b"http://127.0.0.1:80"])
def test_another_page_is_turned_away(origin: bytes) -> None:
    for method in ("GET", "POST"):
        assert asked(f"/{TOKEN}/ask", HOST, (b"origin", origin), method=method)[::2] == (403, [])
    assert asked(f"/{TOKEN}/", HOST, (b"sec-fetch-site", b"cross-site"))[0] == 403


def test_what_changes_something_needs_an_origin() -> None:
    assert asked(f"/{TOKEN}/ask", HOST, method="POST")[::2] == (403, [])
    assert asked(f"/{TOKEN}/ask", HOST, ORIGIN, method="POST")[::2] == (200, ["/ask"])


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.sampled_from([b"host", b"origin", b"x"]), st.binary(max_size=40)), max_size=4),
)
def test_whatever_is_asked_without_the_token_reaches_nothing(path: str, headers: list[tuple[bytes, bytes]]) -> None:
    status, _, paths = asked(path, *headers)
    assert status in (403, 404, 421)
    assert paths == []
