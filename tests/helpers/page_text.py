"""Pages of `judging.reports.page` as lines: a heading as `## …`, and a line for each paragraph and row of a table."""

from html.parser import HTMLParser

ASIDE = ("style", "svg", "title")
LINES = ("h1", "p", "summary")


class _Lines(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._aside: list[str] = []
        self._cells: list[str] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ASIDE:
            self._aside.append(tag)
        elif tag in (*LINES, "h2", "td", "th"):
            self._text = ""
        elif tag == "tr":
            self._cells = []

    def handle_endtag(self, tag: str) -> None:
        if self._aside:
            if tag == self._aside[-1]:
                self._aside.pop()
        elif tag in ("td", "th"):
            self._cells.append(self._text)
        elif tag == "tr":
            self.lines.append(f"| {' | '.join(self._cells)} |")
        elif tag in (*LINES, "h2"):
            self.lines.append("## " * (tag == "h2") + self._text)

    def handle_data(self, data: str) -> None:
        if not self._aside:
            self._text += data


def text_of(page: str) -> str:
    """The lines of a page, each with its end."""
    reader = _Lines()
    reader.feed(page)
    return "".join(f"{line}\n" for line in reader.lines)
