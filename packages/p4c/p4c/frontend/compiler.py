"""`compile_program`: the whole compiler behind one call, skipped where its result is already known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from common import files
from p4c.frontend import cache
from p4c.frontend.cache import Compiled


def compile_program(
    path: str | Path,
    cache_dir: Path | None = None,
    *,
    include_paths: Sequence[Path] = (),
    definitions: Mapping[str, str] | None = None,
    use_cache: bool = True,
    includable: frozenset[Path] | None = None,
) -> Compiled:
    """Compile the program at `path`, or take the result of an earlier run over the same text from `cache_dir`.

    `cache_dir` is by default `$XDG_CACHE_HOME/mrclab` or `~/.cache/mrclab`. A stranger's program may include only the
    files in `includable`. Raises CompileError, whose text is the diagnostics with their places, if the program is wrong
    or not supported.
    """
    path = Path(path)
    key = cache.key(path, include_paths, definitions or {}, includable)
    directory = cache_dir or files.cache_directory()
    if use_cache:
        known = cache.load(directory, key)
        if known is not None:
            return known
    # The phases take as long to import as to run: a cached result does without them.
    from p4c.frontend.compilation import Compilation

    compilation = Compilation(path, include_paths, definitions or {}, includable)
    compiled = compilation.run()
    if use_cache and compilation.preprocessor is not None:
        cache.store(directory, key, compilation.preprocessor.read, compilation.preprocessor.missing, compiled)
    return compiled
