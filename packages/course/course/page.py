"""One HTML page per check: no script, no file beside it, readable on paper."""

from __future__ import annotations

from html import escape
from string import Template

from course.exercise import Exercise
from course.result import CheckResult, Gate, TestResult

PAGE = Template("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8883; --ok: #2a7d3b; --no: #c0392b; --dim: #777 }
@media (prefers-color-scheme: dark) { :root { --ok: #63c178; --no: #ff8b7d; --dim: #999 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } .dim { color: var(--dim) }
.score { font-size: 1.2rem } .ok { color: var(--ok) } .no { color: var(--no) }
section { border-top: 1px solid var(--line); padding: .7rem 0 }
h2 { font-size: 1rem; margin: 0; display: flex; gap: .6rem }
h2 .points { margin-left: auto; color: var(--dim); font-weight: normal }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .2rem .8rem; margin: .4rem 0 0 1.6rem }
dd { margin: 0; overflow-wrap: anywhere }
dt { color: var(--dim); text-align: right } code { font-size: .9em; overflow-wrap: anywhere }
.gate { display: grid; grid-template-columns: 14rem 1fr 9rem; gap: .8rem; align-items: center; font-size: .9rem }
.gate { margin: .3rem 0 0 1.6rem }
.bar { position: relative; height: .5rem; background: var(--line); border-radius: .25rem }
.bar i { position: absolute; inset: 0 auto 0 0; border-radius: .25rem; background: currentColor }
.bar b { position: absolute; top: -.2rem; bottom: -.2rem; width: 2px; background: CanvasText }
pre { overflow: auto; border: 1px solid var(--line); padding: .8rem; font-size: .85rem }
@media (max-width: 40rem) {
dl { grid-template-columns: 1fr; margin-left: 0 } dt { text-align: left }
.gate { grid-template-columns: 1fr auto; margin-left: 0 }
.gate .bar { grid-column: 1 / -1; grid-row: 2 }
}
@media print { body { margin: 0 } }
</style>
<h1>$heading</h1>
<p class="dim">$sub</p>
<p class="score">$score</p>
$body
</html>
""")


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
    words = escape(gate.words[len(gate.name) + 1 :])
    return (
        f'<div class="gate {kind}"><span>{escape(gate.name)}</span>'
        f'<span class="bar"><i style="width:{100 * max(gate.value, 0) / most:.1f}%"></i>'
        f'<b style="left:{100 * gate.limit / most:.1f}%"></b></span><span>{words}</span></div>'
    )
