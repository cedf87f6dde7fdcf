"""The end of an incident: the score, the truth with the evidence that shows it, and a page with a replay."""

from collections.abc import Mapping, Sequence
from typing import Any

from common import files
from common.terminal.counted import counted
from common.terminal.source_names import shown_on_page
from judging.reports import page
from judging.reports.report import REPLAY
from operations.incident import solving
from operations.incident.draw import Hidden
from operations.incident.kind import KINDS
from operations.incident.score import Named, components
from operations.incident.session import AskedCommand, IncidentSession, failures
from operations.incident.words import parse
from page import export

PAGE = "incident.html"
WRITTEN = ("options.json", "journal/runner.jsonl", "answer.json", REPLAY, PAGE)
"""The files that the end of an incident writes into its folder."""
MARKS = {"right": "true", "partly right": "unknown", "wrong": "false", "given up": "unknown"}
ODD = {
    "old-flap": "was down for two seconds long ago; its drops are from then",
    "old-loss": "lost packets for two seconds long ago; its counters still differ",
    "drained": "is drained, as the ticket said",
    "long-cable": "is a longer cable: packets take longer, and none is lost",
}


def finished(session: IncidentSession, named: Sequence[Named] | None, because: str) -> dict[str, Any]:
    """End the incident with an answer, or without (None), and write its page. The answer as JSON, with the page, and in
    `not_written` what could not be written, and why.

    OSError when the answer itself cannot be written: the incident goes on, and may be answered again.
    """
    _, document = session.answer(named or [], because)
    if named is None:
        document |= {"verdict": "given up", "points": 0.0, "net": 0.0, "answer": None}
    folder = session.directory.path
    document |= {"page": str(folder / PAGE), "evidence": [], "not_written": []}
    session.keep(document)  # before anything else: from here on the truth is not lost
    asked = list(session.asked)
    try:
        document["evidence"] = [evidence(session, fault) for fault in session.incident.hidden]
    finally:
        session.asked[:] = asked  # the commands of the evidence are not the operator's
    names = session.incident.plan.names  # of the page, below: a reason may be no UTF-8
    document["not_written"] = session.close() + failures(
        lambda: session.keep(document),
        lambda: export.beside_report(folder),
        lambda: files.write(folder / PAGE, shown_on_page(html(document, asked), names).encode(errors="replace")),
    )
    return document


def evidence(session: IncidentSession, fault: Hidden) -> dict[str, Any]:
    """The recorded commands that show a fault, and what they show here and now."""
    plan = session.incident.plan
    lines = solving.commands(plan, fault)

    def do(line: str) -> dict[str, Any]:
        return session.do(*parse(line), line)

    virtual = session.live.virtual_time
    try:
        signs = solving.shown_by(plan, session.incident.tickets, do, lines, virtual_time=virtual)
    except Exception:  # the lab is gone, or a tool fails: the truth is told without it
        signs = []
    shown = [each.sentence for each in signs if each.kind == fault.kind and each.component in components(fault)]
    return {
        "component": fault.component,
        "kind": fault.kind,
        "commands": [f"./lab incident {line}" for line in lines],
        "hint": solving.recorded()[fault.kind]["hint"],
        "shows": shown[0] if shown else "",
    }


def html(document: Mapping[str, Any], asked: Sequence[AskedCommand]) -> str:
    """The page of an incident that is over."""
    word = document["verdict"]
    mark = page.Raw(f'<span class="verdict {MARKS[word]}">{page.text(word)}</span>')
    used = f"{document['lab_s']:g} s of lab time, {counted(document['commands'], 'command')}"
    parts = [
        f"<h1>Incident, level {document['level']} {page.text(mark)}</h1>",
        page.paragraph(
            f"seed {document['seed']} · {used} · {document['points']:.0%} of the truth, net score {document['net']:+g}"
        ),
        page.paragraph(f"Because: {document['because']}") if document["because"] else "",
        page.paragraph(page.Raw(f'<a href="{REPLAY}">replay</a>')),
        page.section("What was wrong", truth(document)),
        page.section("What would have shown it", *(_evidence(entry) for entry in document["evidence"])),
        page.section("What only looked odd", _oddities(document["oddities"])),
        page.section(
            "What was asked",
            page.table(["at", "command"], [[f"{c.at_s:g} s", c.words] for c in asked]) if asked else None,
        ),
    ]
    return page.page("Incident", *parts)


def truth(document: Mapping[str, Any]) -> str:
    """The hidden faults beside what was answered."""
    if not document["truth"] and not document["extra"]:
        return page.paragraph("Nothing was wrong.")
    answers = {(entry["component"], entry["kind"]): entry["answer"] for entry in document["matched"]}
    rows = [
        [
            fault["component"],
            fault["kind"],
            KINDS[fault["kind"]].meaning,
            f"{document['called_s'] - fault['onset_s']:.1f} s",
            answers[fault["component"], fault["kind"]] or "none",
        ]
        for fault in document["truth"]
    ]
    rows += [
        [fault["component"], "", "nothing is wrong there", "", f"{fault['component']} {fault['kind']}"]
        for fault in document["extra"]
    ]
    return page.table(["component", "kind", "meaning", "before the call", "your answer"], rows)


def _evidence(entry: Mapping[str, Any]) -> str:
    commands = page.Raw("<pre>" + page.text("\n".join(entry["commands"])) + "</pre>")
    shows = f"{entry['hint']} Here: {entry['shows']}." if entry["shows"] else entry["hint"]
    return page.paragraph(f"{entry['component']}: {entry['kind']}. {shows}") + commands


def _oddities(oddities: Sequence[Mapping[str, str]]) -> str | None:
    rows = [[oddity["component"], ODD[oddity["kind"]]] for oddity in oddities]
    return page.table(["component", "what it is"], rows) if rows else None
