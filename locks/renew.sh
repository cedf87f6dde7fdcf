#!/bin/sh
# Renew the locks: locks/renew.sh [--upgrade]. uv runs in an environment that is removed afterwards.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -I -m venv "$scratch/uv"
"$scratch/uv/bin/python" -I -m pip install --quiet --disable-pip-version-check uv
lock() { # lock FROM TO [FURTHER OPTION]...
    from=$1 to=$2
    shift 2
    "$scratch/uv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --custom-compile-command "locks/renew.sh" "$from" --output-file "$to" "$@"
}
lock locks/uv.in locks/uv.txt "$@"
lock locks/shell.in locks/shell.txt "$@"
# Users get what is tested: their lock is a part of the developers'.
lock pyproject.toml locks/dev.txt locks/mcp.in --all-extras "$@"
lock locks/mcp.in locks/mcp.txt --constraint locks/dev.txt "$@"
lock locks/build.in locks/build.txt --constraint locks/dev.txt "$@"
lock pyproject.toml locks/user.txt --constraint locks/dev.txt --extra view --extra compiled --extra cluster --extra parallel "$@"
python3 -I - <<'PYTHON'
import re
from pathlib import Path

BLOCK = re.compile(r"^[a-z0-9][^\n]*\n(?: +[^\n]*\n)*", re.MULTILINE)
dev, users = Path("locks/dev.txt"), set(BLOCK.findall(Path("locks/user.txt").read_text()))
rest = "".join(block for block in BLOCK.findall(dev.read_text()) if block not in users)
dev.write_text(f"# What locks/renew.sh has found for developers beside what users get.\n--requirement user.txt\n{rest}")
PYTHON
