"""The command that counts product lines: tracked code by top-level folder, without tests and docs."""

import subprocess
from pathlib import Path

COMMAND = Path(__file__).with_name("product_lines.sh")


def test_tracked_code_outside_of_tests_and_docs_is_counted_by_folder(tmp_path: Path) -> None:
    tracked = {"hook.py": 1, "switch/a.c": 3, "switch/deep er/b.h": 4, "page/x.js": 2, "packages/p/c.py": 5}
    others = {"tests/t.py": 9, "docs/d.py": 9, "switch/README.md": 9, "untracked.py": 9}
    for name, lines in {**tracked, **others}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("line\n" * lines)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    names = [*tracked, "tests", "docs", "switch/README.md"]
    subprocess.run(["git", "-C", str(tmp_path), "add", "--", *names], check=True)
    done = subprocess.run([COMMAND, tmp_path], capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert rows == [["7", "switch"], ["5", "packages"], ["2", "page"], ["1", "."], ["15", "all, 10 without packages/"]]
