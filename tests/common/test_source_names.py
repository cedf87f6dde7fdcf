"""Names of an imported fabric in text: each name of the lab's own becomes that of the source, and nothing else does."""

import pytest

from common.terminal.source_names import of_options, shown, shown_on_page

NAMES = {"p0l0": "p0-leaf1", "p0s1": "p0-spine2", "h1": "gpu02", "h2": "a&b"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("link-down p0l0-p0s1 undone", "link-down p0-leaf1-p0-spine2 undone"),
        ("p0l0>p0s1, h1.p0 (h1)", "p0-leaf1>p0-spine2, gpu02.p0 (gpu02)"),
        ("p0l0–p0s1: 'h1'", "p0-leaf1–p0-spine2: 'gpu02'"),
        ("p0l00 xp0l0 p0l9 h10 runs/h1/a.h1 1.h1", "p0l00 xp0l0 p0l9 h10 runs/h1/a.h1 1.h1"),
        ("p0l0     in 1", "p0-leaf1 in 1".replace(" in", "  in")),
        ("p0l0          in 1", "p0-leaf1      in 1"),
        ("h1 in", "gpu02 in"),
    ],
)
def test_every_own_name_and_nothing_else_is_replaced(text: str, want: str) -> None:
    assert shown(text, NAMES) == want
    assert shown(text, {}) == text


def test_a_page_keeps_its_tags_and_styles() -> None:
    page = "<html><style>h1 { top: 0 } h2 {}</style><h1 id='h1'>h1</h1><td>h2</td><h2>p0l0-p0s1</h2></html>"
    want = (
        "<html><style>h1 { top: 0 } h2 {}</style><h1 id='h1'>gpu02</h1><td>a&amp;b</td>"
        "<h2>p0-leaf1-p0-spine2</h2></html>"
    )
    assert shown_on_page(page, NAMES) == want
    assert shown_on_page(page, {}) is page


def test_options_of_another_person_give_no_names_that_a_terminal_obeys() -> None:
    assert of_options({}) == of_options({"names": "h1"}) == {}
    assert of_options({"names": {"h0": "a\x1b[2J", "h1": "b"}}) == {"h1": "b"}
