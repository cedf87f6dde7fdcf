"""The process that compiles: mypyc over copies of the sources, then the C compiler, in a separate session.

    MRCLAB_PARENT=PID python -P worker.py LIBRARY SELDOM QUICK AFTER FILE...

SELDOM names the modules whose code runs seldom, with commas between. QUICK is empty, or the name of the Tiny C
Compiler: where it is installed it compiles all that mypyc makes, and there is a folder `quick` beside `made`. AFTER is
0, or the number of a process whose end is awaited before any C compiler is called: it installs them. Writes extensions
below `made` in the current folder. Ends, with the C compiler, when its parent does. Imports no other module of the lab:
the sources that it finds beside it are the copies.
"""

import ast
import ctypes
import os
import re
import select
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType
from typing import Any

_PR_SET_PDEATHSIG = 1
HEADERS = "headers.h"
UNOPTIMIZED = "-O0"
"""For code that runs seldom: the C compiler takes half the time for it, and the code twice as long."""
TOGETHER = "together_"
"""How the names of C files begin that only include those for code that runs seldom, or is to be there quickly."""
PLAIN = ["-D_Py_USE_GCC_BUILTIN_ATOMICS", "-D__ATOMIC_ACQUIRE=2", "-D__atomic_load_n(address,order)=(*(address))"]
"""The Tiny C Compiler has no atomics, which Python's headers ask for since 3.13. Of these mypyc's code uses one, and a
plain read is the same while a thread holds the interpreter's lock."""
DIRECT = "_direct.c"
"""How the names of C files end that hold functions for direct calls (`Unit.direct`)."""


def _end_all(number: int, frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def put_in_place(file: str) -> None:
    """Have compiled code call the functions that a C file's header declares instead of the Python ones.

    The Python functions say which types they take and give; what is no int, bool or bytes is an object.
    """
    from mypyc.ir.ops import ERR_MAGIC
    from mypyc.ir.rtypes import bool_rprimitive, bytes_rprimitive, int_rprimitive, object_rprimitive
    from mypyc.primitives.registry import function_op

    types = {"int": int_rprimitive, "bool": bool_rprimitive, "bytes": bytes_rprimitive}
    folder, name = os.path.split(file.removesuffix(DIRECT))
    module = os.path.join(os.path.dirname(folder), name)
    with open(file.removesuffix(".c") + ".h", encoding="utf-8") as header:
        declared = set(re.findall(rf"\b{name}_(\w+)\(", header.read()))
    with open(f"{module}.py", encoding="utf-8") as source:
        functions = [node for node in ast.parse(source.read()).body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        if function.name in declared:
            declared.remove(function.name)
            taken = [ast.unparse(argument.annotation) for argument in function.args.args if argument.annotation]
            function_op(
                name=f"{module.replace('/', '.')}.{function.name}",
                arg_types=[types.get(annotation, object_rprimitive) for annotation in taken],
                return_type=types[ast.unparse(function.returns)] if function.returns else object_rprimitive,
                c_function_name=f"{name}_{function.name}",
                error_kind=ERR_MAGIC,
            )
    if declared:
        raise ValueError(f"{file}: {module}.py has no function {', '.join(sorted(declared))}")


def together(sources: list[str], shares: int) -> list[str]:
    """So many C files that include these between them, about equally much: a compiler reads its headers once for each
    file that it is given, which is a quarter of the time where it does not optimize."""
    parts: list[list[str]] = [[] for _ in range(shares)]
    for source in sorted(sources, key=os.path.getsize, reverse=True):
        min(parts, key=lambda part: sum(map(os.path.getsize, part))).append(source)
    made = [f"build/{TOGETHER}{number}.c" for number in range(shares)]
    for path, part in zip(made, parts, strict=True):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{os.path.abspath(source)}"\n' for source in part)
    return made


def side_by_side(build_ext: type[Any], quickly: str) -> type[Any]:
    """The command that builds extensions, on all processors; what is put together without optimizing, or by the
    compiler `quickly`."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1)

    class BuildSideBySide(build_ext):  # type: ignore[misc]  # setuptools has no types of it
        """Nearly all of the code is one extension of many files, which setuptools compiles one after the other. All of
        them include the same 500 KB of headers."""

        def build_extensions(self) -> None:
            compile_all = self.compiler.compile

            def places(include_dirs: list[str]) -> list[str]:
                folders = [*include_dirs, *self.compiler.include_dirs]
                return [word for folder in folders for word in ("-I", folder)]

            def precompile(include_dirs: list[str], extra_postargs: list[str]) -> None:
                words = [*self.compiler.compiler_so, *places(include_dirs), *extra_postargs, "-x", "c-header", HEADERS]
                os.makedirs(f"{HEADERS}.gch", exist_ok=True)  # the compiler takes the one that fits its options
                for level in ([],) if quickly else ([], [UNOPTIMIZED]):
                    self.compiler.spawn([*words, *level, "-o", f"{HEADERS}.gch/{len(level)}"])

            def made_quickly(source: str, include_dirs: list[str]) -> str:
                made = f"{source}.o"
                words = [quickly, "-c", "-DNDEBUG", *PLAIN, "-include", HEADERS, *places(include_dirs)]
                self.compiler.spawn([*words, "-o", made, source])
                return made

            def compile_each(sources: list[str], *given: Any, **named: Any) -> list[str]:
                if HEADERS in named["extra_postargs"]:
                    precompile(named["include_dirs"], named["extra_postargs"])

                def compile_one(source: str) -> list[str]:
                    options = named["extra_postargs"]
                    if os.path.basename(source).startswith(TOGETHER):
                        if quickly:
                            return [made_quickly(source, named["include_dirs"])]
                        options = [*options, UNOPTIMIZED]
                    elif source.endswith(DIRECT):  # without the precompiled header, which would bring its own level
                        options = [*(word for word in options if word not in ("-include", HEADERS)), "-O2"]
                    made: list[str] = compile_all([source], *given, **{**named, "extra_postargs": options})
                    return made

                # The largest first, or one processor would have it to itself at the end.
                largest = sorted(sources, key=os.path.getsize, reverse=True)
                made = dict(zip(largest, pool.map(compile_one, largest), strict=True))
                return [file for source in sources for file in made[source]]

            self.compiler.compile = compile_each
            super().build_extensions()

    return BuildSideBySide


def main(arguments: list[str]) -> None:
    parent = int(os.environ["MRCLAB_PARENT"])
    signal.signal(signal.SIGTERM, _end_all)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # gone before this process could ask to be told
        return
    from mypyc.build import mypycify
    from setuptools import Extension, setup
    from setuptools.command.build_ext import build_ext

    name, seldom, quick, after, *files = arguments
    rare = {f"__native_{module.replace('.', '___')}.c" for module in seldom.split(",")}
    modules = [file for file in files if not file.endswith(".c")]
    direct = [file for file in files if file.endswith(DIRECT)]
    for file in direct:
        put_in_place(file)
    # -g0: debugging symbols would make up nine tenths of a build. -O2 takes twice as long as -O1, and no run
    # was faster for it.
    made = mypycify(
        ["--python-executable", sys.executable, "--explicit-package-bases", "--hide-error-context", *modules],
        opt_level="1",
        debug_level="0",
        multi_file=True,  # a C file for each module
        group_name=name.removesuffix("__mypyc"),
    )
    # The others are one extension per module, which only call the first one's code: `finder.py` does that.
    (whole,) = [extension for extension in made if extension.name == name]
    with open(HEADERS, "w", encoding="utf-8") as headers:
        for file in direct:
            headers.write(f'#include "{os.path.abspath(file.removesuffix(".c"))}.h"\n')
        for kind in ("", "internal_"):
            headers.write(f'#include "{os.path.abspath("build")}/__native_{kind}{name.removesuffix("__mypyc")}.h"\n')
    # Calls within the extension need no detour by which another could replace them.
    whole.extra_compile_args = [*whole.extra_compile_args, "-fno-semantic-interposition", "-include", HEADERS]
    whole.extra_link_args = [*whole.extra_link_args, "-Wl,-Bsymbolic-functions"]
    with suppress(OSError):  # there is none, or it has ended
        select.select([os.pidfd_open(int(after))], [], [])
    seldom_c = {source for source in whole.sources if os.path.basename(source) in rare}
    if quickly := (quick and shutil.which(quick)) or "":
        seldom_c = {source for source in whole.sources if os.path.basename(source).startswith("__native_")}
        os.mkdir("quick")
    often = [source for source in whole.sources if source not in seldom_c]
    processors = os.cpu_count() or 1
    whole.sources = [*often, *together(sorted(seldom_c), 2 * processors), *direct]
    extensions = [whole]
    extensions += [
        Extension(file.removesuffix(".c").replace("/", "."), [file], extra_compile_args=["-O2", "-g0"])
        for file in files
        if file.endswith(".c") and file not in direct
    ]
    words = ["build_ext", "--build-lib", "made", "--build-temp", "temp", "--parallel", str(processors)]
    setup(
        name=name,
        ext_modules=extensions,
        script_args=["--quiet", *words],
        cmdclass={"build_ext": side_by_side(build_ext, quickly)},
    )


if __name__ == "__main__":
    main(sys.argv[1:])
