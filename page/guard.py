"""The rules of who may ask the page's server (token, Host, Origin), and of what the page may load."""

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HTTP_PORT = 80
"""Browsers leave it out of Host and Origin."""
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Lets a request through to `app` when it knows the token and comes from the page itself.

    The path loses the token on the way. Without the token every path is 404. The connection of a request with the token
    is admitted: it no longer counts as a stranger's, of which there may be so many (`page.server.Protocol`).
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        ends = [f":{port}", ""] if port == HTTP_PORT else [f":{port}"]
        self._hosts = {f"{name}{end}".encode() for name in ("127.0.0.1", "localhost") for end in ends}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, why = self._judged(scope)
        if status != 200:
            await refuse(send, status, why)
            return
        scope["state"]["admit"]()

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        _, _, rest = scope["path"].removeprefix("/").partition("/")
        await self._app(
            {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}, receive, with_headers
        )

    def _judged(self, scope: Scope) -> tuple[int, str]:
        if values(scope, b"host") - self._hosts or not values(scope, b"host"):
            return 421, "this server answers at 127.0.0.1 and localhost only"
        origins = values(scope, b"origin")
        if origins - self._origins or (scope["method"] != "GET" and not origins):
            return 403, "only the page itself may ask"
        if values(scope, b"sec-fetch-site") - {b"same-origin", b"none"}:
            return 403, "only the page itself may ask"
        token, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self._token):
            return 404, "not found"
        return 200, ""


def values(scope: Scope, name: bytes) -> set[bytes]:
    """All values of a header."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return {value for key, value in headers if key == name}


async def refuse(send: Send, status: int, why: str) -> None:
    """A short answer in plain text, the last one of its connection."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": why.encode() + b"\n"})
