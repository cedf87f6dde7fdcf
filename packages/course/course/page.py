"""One HTML page per check: no script, no file beside it, readable on paper."""

from html import escape
from pathlib import Path
from string import Template

from course.exercise import Exercise
from course.result import CheckResult, Gate, TestResult

PAGE = Template(Path(__file__).with_name("page.template").read_text())


def page(lab: Exercise, result: CheckResult, source: str = "") -> str:
    """The page of a check, with the source if there is one."""
    passed = sum(test.passed for test in result.tests)
    sub = f"{result.student} · seed {result.seed} · file {result.digest[:12]} · {result.seconds:.1f} s"
    if result.trouble:
        score = f'<span class="no">could not be run</span>: {escape(result.trouble)}'
    else:
        kind, words = ("ok", "passed") if result.status == 0 else ("no", "not yet")
        score = (
            f'<span class="{kind}">{words}</span>: {result.score} of {result.points} points, '
            f"{passed} of {len(result.tests)} tests"
        )
    body = "\n".join(section(test) for test in result.tests)
    if result.protection:
        limits = escape(", ".join(result.protection))
        body += f'<section class="dim">The code was contained by limits of: {limits}.</section>'
    if result.printed:
        body += f"<section><h2>the end of what the code printed</h2><pre>{escape(result.printed)}</pre></section>"
    if source:
        body += f"<section><h2>{escape(lab.file)}</h2><pre>{escape(source)}</pre></section>"
    heading = f"Lab {lab.number}: {escape(lab.title)}"
    return PAGE.substitute(title=heading, heading=heading, sub=escape(sub), score=score, body=body)


def section(test: TestResult) -> str:
    """One test."""
    kind, mark = ("ok", "✔") if test.passed else ("no", "✘")
    rows = [("expected", escape(test.outcome.expected)), ("happened", escape(test.outcome.happened))]
    rows += [("look", f"<code>{escape(line)}</code>") for line in test.outcome.look]
    lines = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
    gates = "".join(bar(gate) for gate in test.outcome.gates)
    return (
        f'<section><h2><span class="{kind}">{mark}</span> {escape(test.title)}'
        f'<span class="points">{test.score}/{test.points}</span></h2>{gates}<dl>{lines}</dl></section>'
    )


def bar(gate: Gate) -> str:
    """A gate as a bar with a line at its limit."""
    most = max(gate.value, gate.limit, 1e-9) * 1.25
    kind = "ok" if gate.open else "no"
    words = escape(gate.description[len(gate.name) + 1 :])
    return (
        f'<div class="gate {kind}"><span>{escape(gate.name)}</span>'
        f'<span class="bar"><i style="width:{100 * max(gate.value, 0) / most:.1f}%"></i>'
        f'<b style="left:{100 * gate.limit / most:.1f}%"></b></span><span>{words}</span></div>'
    )
