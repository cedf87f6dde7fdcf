"""The archive that Gradescope takes: the project without tests and references, the installer, the grader."""

import io
import stat
import subprocess
import zipfile
from pathlib import Path

from common import files
from course.exercise import Exercise
from course.student_folder import CourseError

ROOT = Path(__file__).parents[4]
LEFT_OUT = ("tests/", "docs/", "vagrant/", "packages/benchmarks/", "container/", ".ci/", ".github/", "libmrc/")
EPOCH = (2020, 1, 1, 0, 0, 0)  # equal projects make equal archives

SETUP = Path(__file__).with_name("setup.template").read_text()
RUN = Path(__file__).with_name("run_autograder.template").read_text()


def tracked() -> list[Path]:
    """The files that belong to the archive. CourseError outside of a clone."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise CourseError("course pack must run in a clone: git says which files belong to the project")
    names = [name for name in done.stdout.decode().split("\0") if name]
    return [ROOT / name for name in names if not name.startswith(LEFT_OUT) and (ROOT / name).is_file()]


def gradescope(lab: Exercise, key: str, path: Path) -> int:
    """Write the archive; its bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        entries = {str(file.relative_to(ROOT)): file.read_bytes() for file in tracked()}
        entries |= {
            "setup.sh": SETUP.encode(),
            "run_autograder": RUN.format(lab=lab.number, file=lab.file).encode(),
            "course-key": key.encode() + b"\n",
        }
        for name, content in sorted(entries.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            runs = name in ("lab", "setup.sh", "run_autograder")
            entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    files.write_named(path, buffer.getvalue())
    return len(buffer.getvalue())
