"""Actions, compiled: run the primitives in order, following jumps."""

from collections.abc import Callable

from p4c.model import Action
from p4c.model.limits import JUMPS_BACK_MAX
from switch.reference.packet import Packet
from switch.reference.primitives import compile_primitive
from switch.reference.runtime import Runtime
from switch.reference.trace import show

Runner = Callable[[Packet, tuple[int, ...]], None]


class ActionCompiler:
    """Compiles each action of a program once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._runners: dict[int, Runner] = {a.id: self._compile(a) for a in runtime.program.actions}

    def runner(self, action: Action) -> Runner:
        return self._runners[action.id]

    def _compile(self, action: Action) -> Runner:
        runtime = self._runtime
        effects = [compile_primitive(p, runtime) for p in action.primitives]
        end = len(effects)

        def run(packet: Packet, args: tuple[int, ...]) -> None:
            if runtime.trace is not None:
                shown = {p.name: show(a, p.width_bits) for p, a in zip(action.parameters, args, strict=True)}
                runtime.record(packet, "action", action=action.name, args=shown)
            packet.args = args
            at = back = 0
            while at < end:
                jump = effects[at](packet)
                if jump is not None and jump <= at:
                    back += 1
                    jump = jump if back <= JUMPS_BACK_MAX else None
                at = at + 1 if jump is None else jump

        return run
