"""Tables and control flow: a C function that applies each table, and one with a label for each node of a pipeline."""

from p4c.model import Program, UnsupportedError
from p4c.model.expressions import FieldRef, ValidBit
from p4c.model.memory import data_words, word_count
from p4c.model.pipelines import ActionCallNode, Conditional, Key, Pipeline, Table
from switch.native.emit.action import ActionEmitter, action_name, action_number
from switch.native.emit.calculation import selector_name
from switch.native.emit.expression import ExpressionEmitter
from switch.native.emit.layout import Layout, identifier, is_wide
from switch.native.emit.statement import SCOPE, SCOPE_ARGS

KINDS = {
    "exact": "TABLE_EXACT",
    "lpm": "TABLE_LPM",
    "ternary": "TABLE_SCAN",
    "range": "TABLE_SCAN",
    "optional": "TABLE_SCAN",
}


def table_kind(table: Table) -> str:
    if not table.keys:
        return "TABLE_KEYLESS"
    return KINDS[table.match]


def key_words(table: Table) -> int:
    return sum(word_count(key.width_bits) for key in table.keys)


class Tables:
    def __init__(self, program: Program, layout: Layout, actions: ActionEmitter) -> None:
        self.program = program
        self.layout = layout
        self.actions = actions
        self._places = {
            p.name: {node: at for at, node in enumerate(p.nodes)} for p in (program.ingress, program.egress)
        }
        self.exits = any(primitive.op == "exit" for action in program.actions for primitive in action.primitives)

    # --- tables -----------------------------------------------------------------------------------------------

    def functions(self) -> list[str]:
        lines: list[str] = []
        for table in self.program.tables:
            lines += [*self._matcher(table), *self._apply(table)]
        return lines

    def _name(self, table: Table) -> str:
        return f"table_{table.index}_{identifier(table.name)}"

    def _key_text(self, key: Key) -> list[str]:
        """The words of one match field."""
        target = key.target
        if isinstance(target, ValidBit):
            return [f"{self.layout.header(target.header)}.valid"]
        assert isinstance(target, FieldRef)
        text = self.layout.field(target)
        if target.field.varbit:
            raise UnsupportedError(f"match field {key.name}: a varbit field as a key")
        if is_wide(target.field):
            size, count = target.field.width_bits // 8, word_count(key.width_bits)
            parts = [f"load_tail({text}, {size}, {place})" for place in range(count)]
        elif key.width_bits > 64:
            parts = [f"(u64){text}", f"(u64)({text} >> 64)"]
        else:
            parts = [f"(u64){text}"]
        if key.mask is not None:
            parts = [f"({part} & 0x{key.mask >> (64 * i) & 0xFFFFFFFFFFFFFFFF:x}ull)" for i, part in enumerate(parts)]
        if not target.header.metadata:
            parts = [f"({self.layout.header(target.header)}.valid ? {part} : 0)" for part in parts]
        return parts

    def _matcher(self, table: Table) -> list[str]:
        if table_kind(table) != "TABLE_SCAN":
            return []
        tests, word = [], 0
        for key in table.keys:
            count = word_count(key.width_bits)
            if key.match == "range" and count == 1:
                tests.append(f"key[{word}] >= low[{word}] && key[{word}] <= high[{word}]")
            elif key.match == "range":
                if count > 2:
                    raise UnsupportedError(f"match field {key.name}: a range of more than 128 bits")
                a, b, c = (f"ARG128({name} + {word})" for name in ("key", "low", "high"))
                tests.append(f"{a} >= {b} && {a} <= {c}")
            else:
                tests += [f"!((key[{w}] ^ low[{w}]) & high[{w}])" for w in range(word, word + count)]
            word += count
        return [
            f"static inline bool {self._name(table)}_matches(const u64 *key, const u64 *low, const u64 *high)",
            "{",
            f"    return {' && '.join(tests)};",
            "}",
            "",
        ]

    def _apply(self, table: Table) -> list[str]:
        """Returns whether it hit, or the number of the action that ran, whichever the control flow asks for."""
        name, count = self._name(table), key_words(table)
        if not table.keys and table.default and table.default.const and not table.profile:
            return self._apply_constant(table)
        lines = [f"static u32 {name}({SCOPE})", "{", f"    struct table *t = &d->tables[{table.index}];"]
        if table.keys:
            parts = [part for key in table.keys for part in self._key_text(key)]
            lines.append(f"    const u64 key[{count}] = {{{', '.join(parts)}}};")
            find = {
                "TABLE_EXACT": f"table_exact(t, key, {count})",
                "TABLE_LPM": f"table_lpm(t, key, {count})",
                "TABLE_SCAN": f"table_scan(t, key, {name}_matches)",
            }[table_kind(table)]
            lines.append(f"    struct entry *e = {find};")
            lines.append("    bool hit = e != NULL;")
            lines += [f"    {line}" for line in self._direct(table)]
            lines += ["    if (!hit)", "        e = t->fallback;"]
        else:
            lines += ["    struct entry *e = t->fallback;", "    const bool hit = false;"]
        lines += ["    u32 action = NO_ACTION;", "    const u64 *args = NULL;", "    (void)hit; (void)args;"]
        lines += [f"    {line}" for line in self._target(table)]
        lines.append("    switch (action) {")
        for action in table.actions:
            number = action_number(self.program, action)
            lines += [
                f"    case {number}:",
                f"        {action_name(self.program, action)}({SCOPE_ARGS}, args);",
                "        break;",
            ]
        lines += ["    default:", "        break;", "    }"]
        return [*lines, f"    return {'hit' if table.by_hit else 'action'};", "}", ""]

    def _apply_constant(self, table: Table) -> list[str]:
        """A table that can only do one thing, as compilers make of a plain action call."""
        assert table.default
        action, args = table.default.action, []
        for parameter, value in zip(action.parameters, table.default.args, strict=True):
            args += [value >> (64 * i) & 0xFFFFFFFFFFFFFFFF for i in range(word_count(parameter.width_bits))]
        lines = [f"static u32 {self._name(table)}({SCOPE})", "{"]
        if args:
            lines.append(f"    static const u64 args[] = {{{', '.join(f'0x{value:x}ull' for value in args)}}};")
        lines.append(f"    {action_name(self.program, action)}({SCOPE_ARGS}, {'args' if args else 'NULL'});")
        return [*lines, f"    return {0 if table.by_hit else action_number(self.program, action)};", "}", ""]

    def _direct(self, table: Table) -> list[str]:
        lines = []
        if table.counter:
            lines.append("    counter_add(&e->count, p->ingress_length);")
        if table.support_timeout:
            lines.append("    e->hit_ns = now_ns;")
        if table.meter and table.meter.result:
            size = "p->ingress_length" if table.meter.bytes else "1"
            colour = f"e->meter ? meter_colour(e->meter, {size}, now_ns) : GREEN"
            lines.append(f"    {self.layout.field(table.meter.result)} = {colour};")
        return ["if (hit) {", *lines, "}"] if lines else []

    def _target(self, table: Table) -> list[str]:
        direct = ["action = e->action;", "args = entry_args(t, e);"]
        if table.profile is None:
            return ["if (e) {", *(f"    {line}" for line in direct), "}"]
        profile = f"&d->profiles[{table.profile.index}]"
        if table.profile.selector:
            choice = f"group_select({profile}, e->action, {selector_name(table.profile)}({SCOPE_ARGS}))"
        else:
            choice = "NULL"
        return [
            "if (e && e->target == TARGET_ACTION) {",
            *(f"    {line}" for line in direct),
            "} else if (e) {",
            "    const struct member *m = e->target == TARGET_MEMBER",
            f"                                 ? profile_member({profile}, e->action)",
            f"                                 : {choice};",
            "    if (m) {",
            "        action = m->action;",
            "        args = m->args;",
            "    }",
            "}",
        ]

    # --- pipelines --------------------------------------------------------------------------------------------

    def pipeline(self, pipeline: Pipeline) -> list[str]:
        """Statements that end at the label `end`."""
        lines = [self._go(pipeline, pipeline.init)]
        for node in pipeline.nodes.values():
            lines.append(f"{self._label(pipeline, node.name)}:")
            match node:
                case Conditional():
                    condition = ExpressionEmitter(self.layout).boolean(node.expression)
                    lines += [f"    if ({condition})", f"        {self._go(pipeline, node.if_true)}"]
                    lines.append(f"    {self._go(pipeline, node.if_false)}")
                case ActionCallNode():
                    lines.append(f"    {action_name(self.program, node.action)}({SCOPE_ARGS}, NULL);")
                    lines += self._check_exit()
                    lines.append(f"    {self._go(pipeline, node.next)}")
                case Table():
                    lines += [f"    {line}" for line in self._apply_node(pipeline, node)]
        return lines

    def _label(self, pipeline: Pipeline, name: str) -> str:
        return f"node_{self._places[pipeline.name][name]}_{identifier(name)}"

    def _go(self, pipeline: Pipeline, name: str | None) -> str:
        return f"goto {self._label(pipeline, name)};" if name else "goto end;"

    def _check_exit(self) -> list[str]:
        return ["    if (p->exit)", "        goto end;"] if self.exits else []

    def _apply_node(self, pipeline: Pipeline, table: Table) -> list[str]:
        call = f"{self._name(table)}({SCOPE_ARGS})"
        check = [line[4:] for line in self._check_exit()]
        if table.by_hit:
            lines = [
                f"if ({call}) {{",
                *(f"    {line}" for line in check),
                f"    {self._go(pipeline, table.next_hit)}",
                "}",
            ]
            return [*lines, *check, self._go(pipeline, table.next_miss)]
        targets = {table.next_without_action, *table.next_by_action.values()}
        if len(targets) == 1:
            return [f"{call};", *check, self._go(pipeline, table.next_without_action)]
        lines = ["{", f"    u32 ran = {call};", *(f"    {line}" for line in check), "    switch (ran) {"]
        for action in table.actions:
            lines.append(f"    case {action_number(self.program, action)}:")
            lines.append(
                f"        {self._go(pipeline, table.next_by_action.get(action.name, table.next_without_action))}"
            )
        return [*lines, "    default:", f"        {self._go(pipeline, table.next_without_action)}", "    }", "}"]

    # --- descriptions -----------------------------------------------------------------------------------------

    def descriptions(self) -> list[str]:
        """The arrays that struct program points to."""
        program = self.program
        lines = ["static const struct table_info tables[] = {"]
        for table in program.tables:
            profile_index = table.profile.index if table.profile else -1
            size = min(max(table.max_size, len(table.entries), 1), 0xFFFFFFFF)  # few keys may declare more
            lines.append(
                f"    {{{c_string(table.name)}, {table_kind(table)}, {key_words(table)}, {data_words(table)}, "
                f"{size}, {profile_index}}},"
            )
        lines += ['    {"", TABLE_KEYLESS, 0, 0, 0, -1}', "};", "static const u32 profiles[] = {"]
        for profile in program.profiles:
            lines.append(f"    {max((data_words(t) for t in program.tables if t.profile is profile), default=0)},")
        lines += ["    0", "};", "static const struct meter_info meters[] = {"]
        lines += [f"    {{{c_string(m.name)}, {0 if m.direct else m.size}, {int(m.bytes)}}}," for m in program.meters]
        lines += ['    {"", 0, 0}', "};", "static const struct counter_info counters[] = {"]
        lines += [f"    {{{c_string(c.name)}, {0 if c.direct else c.size}}}," for c in program.counters]
        lines += ['    {"", 0}', "};", "static const struct register_info registers[] = {"]
        lines += [f"    {{{c_string(r.name)}, {r.size}, {word_count(r.width_bits)}}}," for r in program.registers]
        return [*lines, '    {"", 0, 0}', "};", ""]


def c_string(text: str) -> str:
    escaped = "".join(ch if ch.isprintable() and ch.isascii() and ch not in '"\\' else "?" for ch in text)
    return f'"{escaped}"'
