"""A small HTML page: escaping, tables and sections, so that `report` can speak of content only."""

from collections.abc import Sequence
from html import escape

__all__ = ["Raw", "page", "paragraph", "section", "table", "text"]

CSS = """
:root { --ink: #1f2933; --soft: #52606d; --line: #e4e7eb; --true: #2b7a4b; --false: #c0392b; --unknown: #b7791f; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; color: var(--ink); margin: 0; background: #f7f8fa; }
main { max-width: 960px; margin: 0 auto; padding: 28px 24px 64px; background: #fff; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 6px 0; } .soft { color: var(--soft); } svg { width: 100%; height: auto; }
.verdict { display: inline-block; padding: 2px 14px; border-radius: 14px; color: #fff; font-weight: 600; }
.true { background: var(--true); } .false { background: var(--false); } .unknown { background: var(--unknown); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin: 8px 0; }
th { text-align: left; font-weight: 600; color: var(--soft); } th, td { padding: 4px 10px 4px 0; vertical-align: top; }
tr + tr td, thead + tbody td { border-top: 1px solid var(--line); } td.number, th.number { text-align: right; }
code, pre { font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { background: #f3f4f6; padding: 10px 12px; overflow-x: auto; border-radius: 6px; }
.mark { font-weight: 700; } .mark.true, .mark.false, .mark.unknown { background: none; }
.mark.true { color: var(--true); } .mark.false { color: var(--false); } .mark.unknown { color: var(--unknown); }
@media print { body { background: #fff; } }
@media screen and (prefers-color-scheme: dark) {
  html { background: #1b1a19; } body { min-height: 100vh; filter: invert(.92) hue-rotate(180deg); } }
"""
POLICY = (
    '<meta http-equiv="Content-Security-Policy"'
    """ content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
)
"""A report has no scripts: one that came in with the journal of a stranger must not run."""


class Raw(str):
    """Text that is HTML already."""


def text(value: object) -> str:
    """Escaped, unless it is HTML already."""
    return value if isinstance(value, Raw) else escape(str(value))


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table; a column whose body cells all are numbers, perhaps with a unit and an interval, is set right."""

    def numeric(column: int) -> bool:
        cells = [str(row[column]) for row in rows if column < len(row)]
        return bool(cells) and all(is_quantity(cell) for cell in cells if cell)

    classes = [' class="number"' if numeric(column) else "" for column in range(len(head))]
    header = "".join(f"<th{kind}>{text(cell)}</th>" for kind, cell in zip(classes, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{text(cell)}</td>" for kind, cell in zip(classes, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def is_quantity(cell: str) -> bool:
    """Whether a number comes first, and of words nothing but a unit: "1.5 ms" is one, "2 bytes, one leaf" is none."""
    words = cell.partition("(")[0].split()
    return cell.startswith(tuple("0123456789-−–+.")) and sum(word[0].isalpha() for word in words) <= 1


def section(title: str, *parts: str | None) -> str:
    """A titled section; one whose parts are all missing is left out."""
    kept = [part for part in parts if part]
    return f"<section><h2>{escape(title)}</h2>{''.join(kept)}</section>" if kept else ""


def paragraph(value: object, soft: bool = False) -> str:
    """One paragraph; a soft one is grey."""
    kind = ' class="soft"' if soft else ""
    return f"<p{kind}>{text(value)}</p>"


def page(title: str, *parts: str) -> str:
    """The whole document, with its style in it."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"{POLICY}<title>{escape(title)}</title>"
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{CSS}</style></head>\n'
        f"<body><main>{body}</main></body></html>\n"
    )
