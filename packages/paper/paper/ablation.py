"""The ablation: each rule of the lab off by itself, and all of them off, over the shipped scenarios in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from endpoint.mrc.presets import RULES, Rule
from paper.report.document import TEXTS, rows, wrapped
from scenarios import library
from studies.sweeping import Chosen, Contrast, Subject, Variant, VariantStatement, contrasts
from studies.sweeping.subject import subject

LAB, STRICT = "mrc-lab", "mrc-strict"
METRIC = "goodput_kept"
TITLE = "# The lab's rules, one by one\n"


def variants(names: Sequence[str], short: bool, factor: float = 1.0) -> list[Variant]:
    """The lab's MRC, the same without each rule, and strict MRC, for each of these scenarios, or for all without names.

    `factor` stretches or shortens every phase. ValueError for a name that is not a scenario's of `library.NAMES`.
    """
    if unknown := [name for name in names if name not in library.NAMES]:
        raise ValueError(f"--ablate takes scenarios: {', '.join(library.NAMES)} (got {unknown[0]!r})")
    return [
        Variant(scenario, transport, settings=settings, others=others(scenario, short, factor))
        for scenario in names or library.NAMES
        for transport, settings in [(LAB, ()), *((LAB, (without(rule),)) for rule in RULES), (STRICT, ())]
    ]


def others(scenario: str, short: bool, factor: float) -> tuple[tuple[str, Any], ...]:
    """The options that all variants of a scenario share; not every scenario has a short form."""
    shortened = [("short", True)] if short and library.find(scenario).short else []
    return (("world", "simulated"), ("time", factor), *shortened)


def without(rule: Rule) -> tuple[str, str]:
    """The setting that takes a rule off, in the words of a command line."""
    return rule.setting, rule.strict if isinstance(rule.strict, str) else json.dumps(rule.strict)


def subjects(chosen: Chosen, seed: int, names: Sequence[str], short: bool, factor: float = 1.0) -> list[Subject]:
    """The variants, checked."""
    return [subject(variant, chosen, seed) for variant in variants(names, short, factor)]


def command(names: Sequence[str], seeds: str, short: bool, factor: float) -> str:
    """The command that makes the page again."""
    words = ["./lab reproduce --ablate", *names, "--seeds", seeds, *(["--short"] if short else [])]
    return " ".join([*words, *([f"--time {factor:g}"] if factor != 1 else [])])


def markdown(found: Sequence[VariantStatement], made_by: str, short: bool = False, wanted: int | None = None) -> str:
    """The page: seeds that were true by rule and scenario, each rule's gain, and its source.

    `made_by` is the command, and `wanted` the number of its runs: a page that has fewer says so. None: it has all.
    """
    kinds: list[tuple[str, Callable[[Variant], bool]]] = [
        ("all rules", lambda one: one.transport == LAB and not one.settings),
        *((f"without `{rule.setting}`", lambda one, rule=rule: without(rule) in one.settings) for rule in RULES),
        ("none of them", lambda one: one.transport == STRICT),
    ]
    names = [name for name in library.NAMES if any(one.variant.scenario == name for one in found)]
    by_scenario = [one for name in names for one in found if one.variant.scenario == name]
    counted = [[title, *(cell(one) for one in by_scenario if of(one.variant))] for title, of in kinds]
    parts = [
        TITLE,
        *([wrapped(f"**{TEXTS['short']}**")] if short else []),
        wrapped(f"{origin(found, made_by, wanted)} {TEXTS['ablation']} {TEXTS['ablation_rows']}"),
        rows(["MRC with", *names], counted),
        wrapped(TEXTS["gains"]),
    ]
    parts += [rows(["scenario", "rule", "goodput kept, with less without"], gains(found))]
    parts += [wrapped(TEXTS["sources"])]
    parts += [
        wrapped(f"- `{one.setting}`: {one.lab} ({one.gain}); strict MRC: {one.strict} ({one.source})", "  ")
        for one in RULES
    ]
    return "\n".join(parts)


def origin(found: Sequence[VariantStatement], made_by: str, wanted: int | None) -> str:
    """Which command made the page, and of a partial page how many of the command's runs it has."""
    broken = sum(len(one.errors) for one in found)
    made = sum(len(one.rows) for one in found) - broken
    if wanted is None or made == wanted:
        return f"`{made_by}` made this page."
    ended = f" {broken} more {'was' if broken == 1 else 'were'} broken off." if broken else ""
    return f"**This page is partial: it has {made} of the {wanted} runs of `{made_by}`.**{ended}"


def cell(one: VariantStatement) -> str:
    """True seeds of all, and how many were unknown."""
    true, unknown = one.verdicts["true"].count, one.verdicts["unknown"].count
    return f"{true} of {len(one.rows)}" + (f", {unknown} unknown" if unknown else "")


def gains(found: Sequence[VariantStatement]) -> list[list[str]]:
    """A row per scenario and rule that makes a difference."""
    settings = {without(rule) for rule in RULES}
    told = []
    for one in contrasts(found):
        off = one.second if one.second.settings else one.first
        if METRIC not in one.metrics or len(off.settings) != 1 or off.settings[0] not in settings:
            continue
        told += [[off.scenario, f"`{off.settings[0][0]}`", text] for text in shown(one, off)]
    return told


def shown(one: Contrast, off: Variant) -> list[str]:
    """The difference with its interval, if it is one; a contrast is second less first."""
    kept = one.metrics[METRIC]
    if kept.low is None or kept.high is None or not kept.clear:
        return []
    sign = -100 if off is one.second else 100
    low, high = sorted((sign * kept.low, sign * kept.high))
    return [f"{sign * kept.mean:+.2f} % ({low:+.2f} to {high:+.2f})".replace("-", "−")]
