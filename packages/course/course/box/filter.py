"""The system calls that are left to a student's code: memory, time, and the two pipes that it has.

The filter is a classic BPF program for seccomp (Linux `seccomp(2)`): any other call fails with EPERM, so that opening a
file, a socket, a process or a thread raises an ordinary error in the student's code, which the check can show.
"""

import platform

from common.linux.bpf import JUMP_EQUAL, LOAD_WORD, RETURN, Line, Program, assemble

NUMBER_AT, ARCHITECTURE_AT = 0, 4  # struct seccomp_data
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000  # REFUSE: SECCOMP_RET_ERRNO with EPERM
X86_64, AARCH64 = "x86_64", "aarch64"
ARCHITECTURES = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}  # AUDIT_ARCH_… of linux/audit.h
CALLS: dict[str, dict[str, int]] = {
    X86_64: {
        "read": 0, "write": 1, "close": 3, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
        "rt_sigprocmask": 14, "rt_sigreturn": 15, "madvise": 28, "mremap": 25, "sched_yield": 24, "getpid": 39,
        "exit": 60, "gettimeofday": 96, "getrusage": 98, "times": 100, "sigaltstack": 131, "gettid": 186, "time": 201,
        "futex": 202, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "exit_group": 231,
        "getrandom": 318, "fstat": 5, "lseek": 8,
    },
    AARCH64: {
        "close": 57, "lseek": 62, "read": 63, "write": 64, "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98,
        "clock_gettime": 113, "clock_getres": 114, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153, "getrusage": 165,
        "gettimeofday": 169, "getpid": 172, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "mprotect": 226, "madvise": 233, "getrandom": 278,
    },
}  # fmt: skip
"""By machine: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux."""


def program(machine: str = "") -> Program | None:
    """The filter for a machine, as `platform.machine` names it; None for one whose calls are not listed here."""
    name = machine or platform.machine()
    if name not in CALLS:
        return None
    lines = [
        Line(LOAD_WORD, ARCHITECTURE_AT),
        Line(JUMP_EQUAL, ARCHITECTURES[name], true="known", false="kill"),
        Line(LOAD_WORD, NUMBER_AT, label="known"),
        *(Line(JUMP_EQUAL, number, true="allow") for number in sorted(CALLS[name].values())),
        Line(RETURN, REFUSE),
        Line(RETURN, ALLOW, label="allow"),
        Line(RETURN, KILL, label="kill"),
    ]
    return assemble(lines)
