"""Colours of the page for people who see fewer: measured, and never colour alone."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "page" / "browser"
MEANINGS = ("busy", "broken", "warn", "gone", "good")
# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0; for linear RGB.
SEEN = {
    "everybody": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ @ np.ones(3)


def themes() -> dict[str, dict[str, str]]:
    style = (PAGE / "style.css").read_text()
    light, dark = re.findall(r":root(?:\.dark)? \{(.*?)\}", style, re.DOTALL)
    return {name: dict(re.findall(r"--(\w+): (#\w{6})", text)) for name, text in (("light", light), ("dark", dark))}


def linear(colour: str) -> np.ndarray:
    """sRGB (IEC 61966-2-1) to linear light."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIE 1976 L*a*b* of linear RGB."""
    x, y, z = ((t ** (1 / 3)) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in XYZ @ light / WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """WCAG 2.1: the ratio of relative luminances."""
    bright, dim = sorted((float((XYZ @ linear(colour))[1]) for colour in (one, other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eyes", SEEN)
def test_what_means_something_else_looks_different_to_everybody(theme: str, eyes: str) -> None:
    colours = themes()[theme]
    seen = {name: lab(np.clip(SEEN[eyes] @ linear(colours[name]), 0, 1)) for name in MEANINGS}
    for one, other in combinations(MEANINGS, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)  # some four just noticeable differences


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_and_lines_stand_out_from_the_paper(theme: str) -> None:
    colours = themes()[theme]
    for paper in ("paper", "sheet"):
        assert contrast(colours["ink"], colours[paper]) >= 7
        assert contrast(colours["soft"], colours[paper]) >= 4.5
        for name in MEANINGS:
            assert contrast(colours[name], colours[paper]) >= 3, name  # of graphics (1.4.11)


def test_no_condition_and_no_sign_is_told_by_its_colour_alone() -> None:
    shapes = (PAGE / "drawing" / "shapes.js").read_text()
    drawn = re.findall(r"name: \"([\w -]+)\", colour: \"\w+\", draw: (\w+)", shapes)
    assert len(drawn) == len({draw for _, draw in drawn}) == 6
    conditions = re.findall(r"(\w+): \{ dash: \[([\d, ]+)\], colour: \"\w+\", sign: \"(.)\"", shapes)
    assert len(conditions) == 7
    signs = {name: sign for name, _, sign in conditions}
    assert len({(dash, sign) for _, dash, sign in conditions if sign != "✕"}) == 5
    assert [name for name, sign in signs.items() if sign == "✕"] == ["dead", "crashed"]  # a cable, a switch
