"""The rule matrix as a page: docs/reference/conformance.md.

python -m conform.matrix > docs/reference/conformance.md
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from conform.rule import ROLES, Rule, load

WIDTH = 148
TITLES = {
    "requester": "A NIC that sends data",
    "responder": "A NIC that receives data",
    "wire": "Frames of either end",
    "fabric": "What a NIC does with SRv6, trimming and marks",
    "hunt": "A NIC under random schedules",
    "switch": "A switch",
    "library": "A library",
}
HEAD = """\
# Conformance: the rules
{}
"""
ABOUT = (
    "The rules that `./lab conform` holds a device against (`docs/conformance.md`). The specification could not be "
    "read here, so a source is the section that a reader quotes, and the reader. A rule is *must* or *should*; "
    "where it is *open*, sources are silent or disagree, and the device's choice is recorded and not judged. "
    "`basic` rules are run first, `all` includes them, `hunt` rules are judged by random schedules. `python -m "
    "conform.matrix` writes this page from `packages/conform/conform/rules/`."
)


def page(rules: Sequence[Rule]) -> str:
    """The whole page."""
    parts = [HEAD.format(textwrap.fill(ABOUT, WIDTH)), table(rules)]
    for role in ROLES:
        mine = [rule for rule in rules if rule.role == role]
        if mine:
            parts.append(f"## {TITLES[role]}\n" + "\n".join(entry(rule) for rule in mine) + "\n")
    return "\n".join(parts)


def table(rules: Sequence[Rule]) -> str:
    """How many rules of each role and level there are."""
    counts = Counter((rule.role, rule.level) for rule in rules)
    lines = ["| role | must | should | open | all |", "|---|---|---|---|---|"]
    for role in ROLES:
        row = [counts[role, level] for level in ("must", "should", "open")]
        if any(row):
            lines.append(f"| {role} | {' | '.join(map(str, row))} | {sum(row)} |")
    return "\n".join(lines) + "\n"


def entry(rule: Rule) -> str:
    """One rule: a bullet, wrapped."""
    tests = ", ".join(f"`{name}`" for name in rule.tests)
    text = f"**{rule.id}** ({rule.level}, {rule.group}): {rule.rule} *Source:* {rule.source}. *Fails:* {rule.fails}"
    if rule.disagree:
        text += f" *Readers:* {rule.disagree}"
    if rule.contract:
        text += f" *See* `{rule.contract}`."
    lines = textwrap.wrap(f"{text} *Test:* {tests}.", WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return "- " + "\n  ".join(lines)


if __name__ == "__main__":
    print(page(load()), end="")
