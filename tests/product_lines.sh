#!/usr/bin/env bash
# Product lines by room: tracked code outside of tests/ and docs/ (docs/testing.md). Rooms are top-level folders.
set -euo pipefail
cd "$(git -C "${1:-$(dirname "$0")}" rev-parse --show-toplevel)"
git ls-files -z -- '*.py' '*.c' '*.h' '*.p4' '*.lua' '*.js' '*.html' '*.css' '*.sh' ':!tests' ':!docs' | xargs -0 awk '
    { room = FILENAME ~ "/" ? substr(FILENAME, 1, index(FILENAME, "/") - 1) : "."; lines[room]++ }
    END {
        for (room in lines) { all += lines[room]; printf "%8d %s\n", lines[room], room | "sort -k1,1nr -k2" }
        close("sort -k1,1nr -k2")
        printf "%8d all, %d without packages/\n", all, all - lines["packages"]
    }'
