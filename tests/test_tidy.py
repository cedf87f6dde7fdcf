"""The house rules that a program can check: functions of a tree, each shown to fail on a planted violation."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.tracked import files_of

ROOT = Path(__file__).parents[1]
MODULE_LINES_MAX, TESTS_LINES_MAX, FUNCTION_LINES_MAX, MARKDOWN_COLUMNS_MAX, HELP_COLUMNS_MAX = 500, 600, 70, 150, 120
FILES_WITHOUT_README_MAX = 4
FOLDER_FILES_MAX = 27  # code and pages; some twenty-five are what a reader takes in
POINTER = re.compile(r"`([\w.-]+(?:/[\w.-]+)*\.(?:py|p4|md|toml|stf|c|h|lua))(?::(\w+))?`")
ELSEWHERE = {
    "my_cut.py", "my_file.py", "plan.toml", "docs/JSON_format.md", "rich.py", "NAME.py", "NAME.toml", "switch.stf",
}  # fmt: skip
"""The reader's own, a run's, behavioral-model's, a library's; any file; a module."""

CODE = {".py", ".js", ".c", ".h", ".p4", ".lua", ".sh"}

BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")  # where statements are

Rule = Callable[[Path, list[Path]], Iterable[str]]


class Outline(NamedTuple):
    """What the rules ask of a Python file, parsed once for all of them. Other files have an empty one."""

    functions: list[tuple[str, int]]
    """Names, and numbers of lines."""
    imports: list[tuple[int, str]]
    """Lines, and dotted names of what is imported."""

    @classmethod
    @cache
    def of(cls, path: Path) -> Outline:
        found = cls([], [])
        inside: list[ast.AST] = [ast.parse(path.read_text())] if path.suffix == ".py" else []
        while inside:
            node = inside.pop()
            inside.extend(one for field in BLOCKS for one in getattr(node, field, ()) if isinstance(one, ast.AST))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
            elif isinstance(node, ast.ImportFrom):
                found.imports.extend((node.lineno, f"{node.module or ''}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Import):
                found.imports.extend((node.lineno, alias.name) for alias in node.names)
        return found


def modules_are_short(root: Path, files: list[Path]) -> Iterator[str]:
    for path in files:
        lines = len(path.read_text().splitlines()) if path.suffix in (".py", ".c", ".h") else 0
        most = TESTS_LINES_MAX if path.relative_to(root).parts[0] == "tests" else MODULE_LINES_MAX
        if lines > most:
            yield f"{path.relative_to(root)} has {lines} lines; at most {most}"


def functions_are_short(root: Path, files: list[Path]) -> Iterator[str]:
    for path in files:
        for name, lines in Outline.of(path).functions:
            if lines > FUNCTION_LINES_MAX:
                yield f"{path.relative_to(root)}: {name} has {lines} lines; at most {FUNCTION_LINES_MAX}"


def folders_are_small(root: Path, files: list[Path]) -> Iterator[str]:
    """Folders of the product and of pages; data and tests, which are found by name, may be many."""
    read = [path for path in files if path.suffix in CODE | {".md"} and path.relative_to(root).parts[0] != "tests"]
    for folder, count in Counter(path.parent for path in read).items():
        if count > FOLDER_FILES_MAX:
            yield f"{folder.relative_to(root)} has {count} files; at most {FOLDER_FILES_MAX}"


def folders_have_readmes(root: Path, files: list[Path]) -> Iterator[str]:
    """A folder of many files says what it holds; one without Python may leave that to a folder above, and tests to the
    first line of each file."""
    for folder in sorted({path.parent for path in files if path.relative_to(root).parts[0] != "tests"}):
        inside = [path for path in files if path.parent == folder]
        if len(inside) > FILES_WITHOUT_README_MAX:
            data = not any(path.suffix == ".py" for path in inside)
            places = [folder, *(folder.parents if data and folder != root else ())]
            if not any(place / "README.md" in files for place in places if place != root or folder == root):
                yield f"{folder.relative_to(root)} has {len(inside)} files and no README.md"


def pointers_exist(root: Path, files: list[Path]) -> Iterator[str]:
    """A file named in a page is there: from the page's folder, from the root, or by a name that only one has."""
    named: dict[str, list[Path]] = {}
    for path in files:
        named.setdefault(path.name, []).append(path)
    for page in (path for path in files if path.suffix == ".md" and path.name != "CHANGELOG.md"):
        for name, member in POINTER.findall(page.read_text()):
            alike = named.get(Path(name).name, [])
            found = [path for path in alike if path == root / name or str(path).endswith(f"/{name}")]
            if not found and name not in ELSEWHERE and not name.startswith(("mylab/", "runs/")):  # a reader's
                yield f"{page.relative_to(root)} names {name}, which is not there"
            elif found and member and not any(re.search(rf"\b{member}\b", path.read_text()) for path in found):
                yield f"{page.relative_to(root)} names {name}:{member}, which is not there"


def readmes_name_files(root: Path, files: list[Path]) -> Iterator[str]:
    """The README of a folder of the product names each file of code, or a pattern that covers the file."""
    for page in (path for path in files if path.name == "README.md" and path.parent != root):
        if page.relative_to(root).parts[0] == "tests":
            continue  # names of tests are sentences already
        text = page.read_text()
        patterns = re.findall(r"`([\w*.-]+\.\w+)`", text)  # not POINTER: a pattern is no file
        for path in (path for path in files if path.parent == page.parent and path.suffix in CODE):
            covered = any(fnmatch(path.name, pattern) for pattern in patterns) or re.search(rf"\b{path.stem}\b", text)
            if not covered and not path.name.startswith("__"):
                yield f"{page.relative_to(root)} does not name {path.name}"


def markdown_is_narrow(root: Path, files: list[Path]) -> Iterator[str]:
    """What a program prints, quoted as `text`, is as wide as the program makes it."""
    for page in (path for path in files if path.suffix == ".md"):
        quoted = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.lstrip().startswith("```"):
                quoted = line.lstrip().startswith("```text")
            if not quoted and len(line) > MARKDOWN_COLUMNS_MAX:
                yield f"{page.relative_to(root)}:{number} has {len(line)} columns; at most {MARKDOWN_COLUMNS_MAX}"


def helps_are_narrow(root: Path, files: list[Path]) -> Iterator[str]:
    for text in (path for path in files if path.suffix == ".txt" and "commands" in path.parts):
        for number, line in enumerate(text.read_text().splitlines(), 1):
            if len(line) > HELP_COLUMNS_MAX:
                yield f"{text.relative_to(root)}:{number} has {len(line)} columns; at most {HELP_COLUMNS_MAX}"


def merges_are_finished(root: Path, files: list[Path]) -> Iterator[str]:
    for path in (path for path in files if path.suffix in CODE | {".md", ".toml"}):
        if mark := re.search("^(?:<{7}|>{7})(?: |$)", path.read_text(), re.MULTILINE):
            yield f"{path.relative_to(root)} has the mark {mark[0]!r} of an unfinished merge"


def nobody_imports_tests(root: Path, files: list[Path]) -> Iterator[str]:
    for path in (path for path in files if path.relative_to(root).parts[0] != "tests"):
        for line, name in Outline.of(path).imports:
            if name.split(".")[0] == "tests":
                yield f"{path.relative_to(root)}:{line} imports from tests"


def no_test_imports_a_test(root: Path, files: list[Path]) -> Iterator[str]:
    """What two tests share is a helper, in a file of its own."""
    for path in (path for path in files if path.relative_to(root).parts[0] == "tests"):
        for line, name in Outline.of(path).imports:
            if any(word.startswith("test_") for word in name.split(".")):
                yield f"{path.relative_to(root)}:{line} imports {name}; what tests share belongs in tests/helpers"


RULES: dict[Rule, dict[str, str]] = {
    modules_are_short: {"topo/long.py": "x = 1\n" * 501},
    functions_are_short: {"topo/long.py": "def far() -> None:\n" + "    x = 1\n" * 70},
    folders_are_small: {f"topo/many/m{number}.py": "" for number in range(28)},
    folders_have_readmes: {f"topo/many/{name}.py": "" for name in "abcde"},
    pointers_exist: {"topo/README.md": "Begin with `gone.py` and `topo/plan.py:load_plan`.\n", "topo/plan.py": ""},
    readmes_name_files: {
        "topo/README.md": "`plan.py` and `figure_*.py`\n",
        "topo/plan.py": "",
        "topo/figure_1.py": "",
        "topo/forgotten.py": "",
    },
    markdown_is_narrow: {"docs/wide.md": "a " * 76},
    helps_are_narrow: {"cli/commands/run.txt": "a " * 61},
    merges_are_finished: {"docs/two.md": "<" * 7 + " HEAD\none\n=======\nother\n"},
    nobody_imports_tests: {"benchmarks/fast.py": "def f():\n    from tests.endpoint import flows\n"},
    no_test_imports_a_test: {"tests/topo/test_path.py": "from tests.topo.test_plan import plan_of\n"},
}
"""Each rule with a made-up tree that breaks it."""


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone but a copy (vagrant's): git knows no files of it")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.smoke
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(ROOT, files_of(ROOT))) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_planted_violation_breaks_the_rule(rule: Rule, tmp_path: Path) -> None:
    for name, text in RULES[rule].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(rule(tmp_path, sorted(path for path in tmp_path.rglob("*") if path.is_file())))
