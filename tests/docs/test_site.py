"""The site has every page in its contents, and links where a page names another one."""

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("site_conf", DOCS / "conf.py")
assert _spec
assert _spec.loader
conf = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(conf)


def shown(name: str, text: str) -> str:
    source = [text]
    conf._read(None, name, source)
    return source[0]


def test_every_page_is_in_the_contents() -> None:
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"README"}
    contents = re.findall(r"^[\w/-]+$", conf._contents((DOCS / "README.md").read_text()), re.MULTILINE)
    assert sorted(contents) == sorted(pages)


def test_the_name_of_a_page_becomes_a_link_from_wherever_it_is() -> None:
    assert shown("guide", "see `docs/security.md`.") == "see [`docs/security.md`](/security.md).\n"
    assert shown("reference/fabric", "`topologies.md`") == "[`topologies.md`](/reference/topologies.md)\n"
    assert shown("guide", "`switch/native/README.md`, [`uverbs.md`](uverbs.md), `guide.md`") == (
        "`switch/native/README.md`, [`uverbs.md`](uverbs.md), `guide.md`\n"
    )
