"""The files of the page in `browser/`, for the server and for the replay as one file."""

from pathlib import Path

BROWSER = Path(__file__).with_name("browser")
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


def browser_files() -> dict[str, bytes]:
    """Every file of the page by its path below `browser/`."""
    files = (path for path in sorted(BROWSER.rglob("*")) if path.suffix in MEDIA_TYPES)
    return {path.relative_to(BROWSER).as_posix(): path.read_bytes() for path in files}
