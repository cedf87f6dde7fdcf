"""Controls: their instances, tables, actions and extern objects."""

from __future__ import annotations

from . import ast, ir
from .diagnostics import Span
from .lower_base import RefusalError
from .lower_extern import ExternLowerer
from .scope import Callee, Symbol
from .types import Applicable, Bits, EnumValue, Extern, Type, strip
from .values import ActionValue, BlockValue, ExternValue, Frame, Literal, TableValue, Value


class ControlLowerer(ExternLowerer):
    pipeline: ir.Pipeline | None = None

    # --- instances -------------------------------------------------------------------------------------------------

    def instance(self, d: ast.Instance, symbol: Symbol, frame: Frame) -> None:
        """An extern object, or an instance of a control or parser."""
        t, callee = symbol.type, symbol.value
        assert isinstance(callee, Callee)
        name = self.control_plane_name(d, frame.prefix)
        if isinstance(t, Extern):
            frame.bind(symbol, self._extern_object(d, t, callee, name))
        elif isinstance(t, Applicable) and t.kind in ("control", "parser"):
            frame.bind(symbol, self.block_value(t, callee, name, d.span))

    def block_value(self, t: Applicable, callee: Callee, name: str, span: Span) -> BlockValue:
        declaration = t.declaration
        assert isinstance(declaration, ast.Control | ast.Parser)
        symbol = self.block_symbol(declaration)
        block = BlockValue(symbol, declaration, name, Frame(self.globals, name))
        for parameter, argument in zip(symbol.overloads, callee.arguments, strict=True):
            assert argument is not None
            value = self.value_of(argument)
            if not isinstance(value, ir.Const | Literal | ir.Text | ExternValue | BlockValue):
                raise RefusalError(f"the constructor argument for {parameter.name} is not known at compile time", span)
            block.frame.bind(parameter, value)
        return block

    def block_symbol(self, d: ast.Control | ast.Parser) -> Symbol:
        raise NotImplementedError

    def _constant_argument(self, callee: Callee, index: int, what: str) -> int:
        argument = callee.arguments[index]
        assert argument is not None
        value = self.value_of(argument)
        if not isinstance(value, ir.Const):
            raise RefusalError(f"{what} must be known at compile time", argument.span)
        return value.value

    def _unit(self, callee: Callee, index: int) -> str:
        argument = callee.arguments[index]
        assert argument is not None
        value = self.value_of(argument)
        assert isinstance(value, Literal)
        assert isinstance(value.value, EnumValue)
        return value.value.member

    def _extern_object(self, d: ast.Instance, t: Extern, callee: Callee, name: str) -> ExternValue:
        made: ir.Counter | ir.Meter | ir.Register | ir.ActionProfile
        self.claim(t.name, name, d.span)
        index = t.arguments[-1] if t.arguments and t.name in ("counter", "meter") else None
        if t.name in ("counter", "direct_counter"):
            direct = t.name == "direct_counter"
            size = None if direct else self._constant_argument(callee, 0, "the size of a counter")
            made = ir.Counter(name, self._unit(callee, 0 if direct else 1), size, index_type=index)
            self.program.counters.append(made)
        elif t.name in ("meter", "direct_meter"):
            direct = t.name == "direct_meter"
            size = None if direct else self._constant_argument(callee, 0, "the size of a meter")
            made = ir.Meter(name, self._unit(callee, 0 if direct else 1), size, index_type=index)
            self.program.meters.append(made)
        elif t.name == "register":
            element = strip(t.arguments[0])
            if not isinstance(element, Bits):
                raise RefusalError(f"BMv2 registers hold bit<> or int<>, not {t.arguments[0]}", d.span)
            size = self._constant_argument(callee, 0, "the size of a register")
            made = ir.Register(name, size, t.arguments[0], index_type=t.arguments[1] if len(t.arguments) > 1 else None)
            self.program.registers.append(made)
        elif t.name == "action_profile":
            made = ir.ActionProfile(name, self._constant_argument(callee, 0, "the size of an action profile"), None, [])
        elif t.name == "action_selector":
            size = self._constant_argument(callee, 1, "the size of an action selector")
            made = ir.ActionProfile(name, size, self.algorithm(callee.arguments[0]), [])
        else:
            raise RefusalError(
                f"BMv2's simple_switch has no extern {t.name}",
                d.span,
                "externs: action_profile, action_selector, counter, direct_counter, direct_meter, meter, register",
            )
        made.annotations, made.span = d.annotations, d.span
        return ExternValue(t, name, made)

    # --- applying a control ----------------------------------------------------------------------------------------

    def make_locals(self, block: BlockValue) -> None:
        """Bring a block's declarations into its frame: objects and tables once, variables anew at each apply."""
        first = not block.locals_made
        block.locals_made = True
        for d in block.declaration.locals:
            symbol = self.symbol_of(d)
            try:
                if isinstance(d, ast.Variable):
                    self.variable(d)
                elif isinstance(d, ast.Instance) and first:
                    self.instance(d, symbol, block.frame)
                elif isinstance(d, ast.Table) and first:
                    name = self.control_plane_name(d, block.name)
                    block.frame.bind(symbol, TableValue(d, name, block.frame))
                elif isinstance(d, ast.Action) and first:
                    name = self.control_plane_name(d, block.name)
                    self.claim("action", name, d.span)
                    block.frame.bind(symbol, ActionValue(symbol, d, name, block.frame))
                    self.program.declared_actions.append(name)
            except RefusalError as refusal:
                self.refuse(refusal)

    def apply_control(self, e: ast.Call, callee: Callee) -> None:
        assert callee.base is not None
        base = callee.base
        found = self.frame.lookup(base.target) if isinstance(base, ast.Name) and base.target is not None else None
        block = found if isinstance(found, BlockValue) else self._direct(callee, e.span)
        back = self.bind_block(block, e, callee)
        self._deeper(e.span)
        region = ir.Region([], span=e.span)
        outer_frame, outer_out = self.frame, self.out
        self.frame, self.out = block.frame, region.body
        self.control_body(block)
        self.frame, self.out = outer_frame, outer_out
        self.depth -= 1
        self.out.append(region)
        self.copy_back(back, region.body, e.span)

    def _direct(self, callee: Callee, span: Span) -> BlockValue:
        """`Control.apply(…)`: an instance without a name of its own takes the control's."""
        assert callee.symbol is not None
        t = callee.symbol.type
        assert isinstance(t, Applicable)
        key = (id(self.frame), id(t.declaration), span)
        if key not in self._direct_blocks:
            prefix = self.frame.prefix
            name = self.control_plane_name(t.declaration, prefix)
            self._direct_blocks[key] = self.block_value(t, Callee("constructor", t.name), name, span)
        return self._direct_blocks[key]

    _direct_blocks: dict[tuple[int, int, Span], BlockValue]

    def control_body(self, block: BlockValue) -> None:
        assert isinstance(block.declaration, ast.Control)
        assert block.declaration.body is not None
        self.make_locals(block)
        self.statement(block.declaration.body)

    # --- tables ----------------------------------------------------------------------------------------------------

    def apply_table(
        self, call: ast.Call, hit: list[ir.Stmt] | None = None, miss: list[ir.Stmt] | None = None
    ) -> ir.Apply:
        callee = call.target
        assert isinstance(callee, Callee)
        assert isinstance(callee.base, ast.Name)
        value = self.frame.lookup(callee.base.target)
        if not isinstance(value, TableValue):
            raise RefusalError(f"table {callee.name} cannot be applied here", call.span)
        if value.table is None:
            value.table = self._table(value)
        for place, expression in value.prepared:
            self.assign_scalar(place, self.scalar_of(expression), expression.span)
        applied = ir.Apply(value.table, hit, miss, span=call.span)
        self.out.append(applied)
        return applied

    def _table(self, value: TableValue) -> ir.Table:
        d = value.declaration
        assert self.pipeline is not None
        self.claim("table", value.name, d.span)
        actions = []
        for ref in d.actions:
            value.actions[ref.name] = self._listed_action(ref)
            actions.append((value.actions[ref.name], ref.annotations))
        default, default_arguments, default_const = self._default_action(value, actions)
        table = ir.Table(
            value.name, [], actions, default, default_arguments, default_const, None, d.entries_const, 0, span=d.span
        )
        table.annotations = d.annotations
        self._table_properties(d, table)
        for key in d.keys:
            self._key(value, table, key)
        if table.profile is not None and table.profile.algorithm is not None:
            self._selector(table, table.profile)
        if d.entries is not None:
            table.entries = self._entries(value, d.entries)
        self.pipeline.tables.append(table)
        return table

    def _default_action(
        self, value: TableValue, actions: list[tuple[ir.ActionDef, list[ast.Annotation]]]
    ) -> tuple[ir.ActionDef, list[int], bool]:
        d = value.declaration
        if d.default is not None:
            definition = value.actions.get(d.default.name)
            if definition is None:
                definition = self.no_action()
                actions.append((definition, []))
            return definition, self._numbers(d.default), d.default_const
        nothing = self.no_action()
        if all(a is not nothing for a, _ in actions):
            # As the language has it: a table without a default action does nothing at a miss.
            only = ast.Annotation(d.span, "defaultonly")
            actions.append((nothing, [only]))
        return nothing, [], False

    def no_action(self) -> ir.ActionDef:
        raise NotImplementedError

    def _numbers(self, ref: ast.ActionRef) -> list[int]:
        """The action data that a default action or an entry gives."""
        numbers = []
        assert isinstance(ref.target, Symbol)
        for info, a in zip(ref.target.parameters, ref.bound, strict=False):
            if info.direction or a is None:
                continue
            value = self.scalar_of(a)
            if not isinstance(value, ir.Const):
                raise RefusalError("action data must be known at compile time here", a.span)
            bits = value.type.width if isinstance(value.type, Bits) else 64
            numbers.append(value.value & ((1 << bits) - 1))
        return numbers

    def _listed_action(self, ref: ast.ActionRef) -> ir.ActionDef:
        assert isinstance(ref.target, Symbol)
        action = self.find_action(ref.target)
        if any(a is not None for a in ref.bound):
            # Arguments bound here make it another action, of the same name.
            return self._define_action(action, ref.bound)
        if action.definition is None:
            action.definition = self._define_action(action, [None] * len(ref.target.parameters))
        return action.definition

    def _define_action(self, action: ActionValue, arguments: list[ast.Expression | None]) -> ir.ActionDef:
        d = action.declaration
        definition = ir.ActionDef(action.name, [], [], d.annotations, d.span)
        frame = Frame(action.frame, action.name)
        back: list[tuple[Value, Value]] = []
        outer_frame, outer_out = self.frame, self.out
        self.out = definition.body
        for info, argument in zip(action.symbol.parameters, arguments, strict=True):
            if info.direction and argument is not None:
                storage, place = self.copied(argument, info, f"{action.name}.{info.name}")
                frame.bind(info.symbol, storage)
                if place is not None:
                    back.append((place, storage))
                continue
            if info.direction:
                raise RefusalError(
                    f"action {d.name} has parameter {info.name} with a direction: a table cannot give it a value",
                    d.span,
                )
            t = strip(info.type)
            index = len(definition.parameters)
            definition.parameters.append((info.name, info.type, info.declaration.annotations))
            frame.bind(info.symbol, ir.ActionData(index, info.name, t))
        self.frame = frame
        self.inlined(d.body, back, d.span)
        self.frame, self.out = outer_frame, outer_out
        self.program.actions.append(definition)
        return definition

    def action_name(self, table: ir.Table, label: ast.Name, call: ast.Call) -> str:
        callee = call.target
        assert isinstance(callee, Callee)
        assert isinstance(callee.base, ast.Name)
        value = self.frame.lookup(callee.base.target)
        assert isinstance(value, TableValue)
        return value.actions[label.name].name

    # --- keys and entries ------------------------------------------------------------------------------------------

    def _key(self, value: TableValue, table: ir.Table, key: ast.KeyElement) -> None:
        named = next((a for a in key.annotations if a.name == "name" and a.expressions), None)
        if named is not None and isinstance(named.expressions[0], ast.String):
            name = named.expressions[0].text
        else:
            name = key_name(key.expression)
            if not name:
                note = 'add @name("…") after its match kind'
                raise RefusalError("this key needs a name for the control plane", key.span, note)
        assert isinstance(key.expression.type, Type)
        target, before = self.isolated(key.expression)
        mask = None
        if key.match_kind == "selector":
            if table.profile is None or table.profile.algorithm is None:
                raise RefusalError(f"table {table.name} has selector keys but no action_selector", key.span)
            simple = isinstance(target, ir.FieldRef) and not before
            chosen = target if simple else self._prepared(value, target, key)
            table.all_keys.append(ir.Key(chosen, "selector", name, None, key.expression.type, [], key.annotations))
            return
        match target:
            case ir.Operation(op="&", operands=(ir.FieldRef() as field, ir.Const() as masked)) if not before:
                target, mask = field, masked.value
        if isinstance(target, ir.Valid) and not target.union and key.match_kind in ("exact", "ternary", "optional"):
            target = ir.FieldRef(target.header, "$valid$", Bits(1))
        elif not isinstance(target, ir.FieldRef) or before:
            target = self._prepared(value, target, key)
        annotations = [a for a in key.annotations if a.name != "name"]
        made = ir.Key(target, key.match_kind, name, mask, key.expression.type, annotations, key.annotations)
        table.keys.append(made)
        table.all_keys.append(made)

    def _selector(self, table: ir.Table, profile: ir.ActionProfile) -> None:
        inputs = [k.target for k in table.all_keys if k.match == "selector"]
        if not inputs:
            raise RefusalError(f"table {table.name} uses a selector but has no key of match kind selector", table.span)
        if profile.inputs and profile.inputs != inputs:
            message = f"selector {profile.name} is used with other keys by another table: BMv2 has one list"
            raise RefusalError(message, table.span)
        profile.inputs = inputs

    def _prepared(self, value: TableValue, target: ir.Expr, key: ast.KeyElement) -> ir.FieldRef:
        place = self.scalar(f"{value.name}.key", target.type)
        value.prepared.append((place, key.expression))
        return place

    def _entries(self, value: TableValue, entries: list[ast.Entry]) -> list[ir.TableEntry]:
        """Entries with BMv2's priorities, of which the smallest wins; among P4's own the largest does."""
        d = value.declaration
        made = [self._entry(value, e) for e in entries]
        if d.entries_const:
            for position, (entry, e) in enumerate(zip(made, entries, strict=True)):
                given = next((a for a in e.annotations if a.name == "priority" and a.expressions), None)
                number = given.expressions[0] if given is not None else None
                entry.priority = number.number if isinstance(number, ast.Number) else position + 1
            return made
        self.diagnostics.warning("target", "BMv2 holds these entries for constant, as if written const entries", d.span)
        wins, step = d.properties.get("largest_priority_wins"), d.properties.get("priority_delta")
        largest = wins is None or bool(wins.value.value)
        delta = int(step.value.value) if step is not None else 1
        priorities: list[int] = []
        for e in entries:
            if e.priority is not None:
                priorities.append(int(e.priority.value))
            elif priorities:
                priorities.append(priorities[-1] + (-delta if largest else delta))
            else:
                priorities.append(len(entries) * delta if largest else 1)
        order = sorted(range(len(made)), key=lambda i: -priorities[i] if largest else priorities[i])
        for rank, i in enumerate(order):
            made[i].priority = rank + 1
        return made

    def _entry(self, value: TableValue, e: ast.Entry) -> ir.TableEntry:
        d = value.declaration
        keys = []
        for element, key in zip(e.keys, d.keys, strict=True):
            if key.match_kind == "selector":
                continue
            t = strip(key.expression.type)
            bits = t.width if isinstance(t, Bits) else self.bits(t)
            keys.append(self._key_value(element, key.match_kind, bits))
        return ir.TableEntry(keys, value.actions[e.action.name], self._numbers(e.action), 0, e.span, e.annotations)

    def _key_value(self, e: ast.Expression, match: str, bits: int) -> ir.KeyValue:
        full = (1 << bits) - 1

        def number(x: ast.Expression) -> int:
            value = self.scalar_of(x)
            assert isinstance(value, ir.Const)
            return value.value & full

        wild = isinstance(e, ast.Default)
        if isinstance(e, ast.Binary) and e.op == "&&&":
            first, mask = number(e.left), number(e.right)
            if match == "lpm":
                length = bin(mask).count("1")
                if mask != full ^ ((1 << (bits - length)) - 1):
                    raise RefusalError("the mask of an lpm key must be a prefix", e.span)
                return ir.KeyValue(match, first & mask, length)
            return ir.KeyValue(match, first & mask, mask)
        if isinstance(e, ast.Binary) and e.op == "..":
            return ir.KeyValue(match, number(e.left), number(e.right))
        if match == "range":
            return ir.KeyValue(match, 0, full) if wild else ir.KeyValue(match, number(e), number(e))
        if match == "lpm":
            return ir.KeyValue(match, 0, 0) if wild else ir.KeyValue(match, number(e), bits)
        return ir.KeyValue(match, 0, 0) if wild else ir.KeyValue(match, number(e), full)

    # --- properties ------------------------------------------------------------------------------------------------

    def _table_properties(self, d: ast.Table, table: ir.Table) -> None:
        for p in d.properties.values():
            if p.name == "size":
                table.size = int(p.value.value)
            elif p.name == "support_timeout":
                table.support_timeout = bool(p.value.value)
            elif p.name in ("implementation", "counters", "meters"):
                value = self._made_in_place(table, p) if isinstance(p.value, ast.Call) else self.value_of(p.value)
                assert isinstance(value, ExternValue)
                self._attach(table, value, p)

    def _made_in_place(self, table: ir.Table, p: ast.Property) -> Value:
        """`implementation = action_profile(…)`: the object takes its name from `@name` before the property."""
        made = p.value
        assert isinstance(made, ast.Call)
        callee = made.target
        named = next((a for a in p.annotations if a.name == "name"), None)
        if not isinstance(callee, Callee) or not isinstance(callee.returns, Extern):
            raise RefusalError(f"{p.name} of table {table.name} must be an extern object", p.span)
        if named is None:
            note = "declare it before the table and give its name here"
            raise RefusalError(f"the {callee.name} of table {table.name} has no name", p.span, note)
        d = ast.Instance(p.span, "", ast.NamedType(p.span, callee.name), [], annotations=p.annotations)
        name = self.control_plane_name(d, self.frame.prefix)
        return self._extern_object(d, callee.returns, callee, name)

    def _attach(self, table: ir.Table, value: ExternValue, p: ast.Property) -> None:
        assert self.pipeline is not None
        if isinstance(value.object, ir.ActionProfile):
            table.profile = value.object
            value.object.tables.append(table)
            if value.object not in self.pipeline.profiles:
                self.pipeline.profiles.append(value.object)
            return
        assert isinstance(value.object, ir.Counter | ir.Meter)
        if value.object.table is not None:
            raise RefusalError(
                f"{value.name} is attached to two tables, {value.object.table.name} and {table.name}", p.span
            )
        value.object.table = table
        if isinstance(value.object, ir.Counter):
            table.counter = value.object
        else:
            table.meter = value.object


def key_name(e: ast.Expression) -> str:
    """What P4Runtime calls a key: the expression as written, validity as `$valid$`; empty if it has no name."""
    match e:
        case ast.Name():
            return e.name
        case ast.Member():
            base = key_name(e.base)
            return f"{base}.{e.name}" if base else ""
        case ast.Call():
            if isinstance(e.callee, ast.Member) and e.callee.name == "isValid":
                base = key_name(e.callee.base)
                return f"{base}.$valid$" if base else ""
            return ""
        case ast.Index():
            base, index = key_name(e.base), key_name(e.index)
            return f"{base}[{index}]" if base and index else ""
        case ast.Slice():
            parts = [key_name(x) for x in (e.base, e.high, e.low)]
            return f"{parts[0]}[{parts[1]}:{parts[2]}]" if all(parts) else ""
        case ast.Binary(op="&"):
            left, right = key_name(e.left), key_name(e.right)
            return f"{left} & {right}" if left and right else ""
        case ast.Number():
            return e.text if e.width is None else str(e.number)
    return ""
