"""counter_arrays, meter_arrays, register_arrays, calculations, checksums, field_lists; refused externs."""

from functools import partial

from p4c.model import externs
from p4c.model.expressions import FieldRef, Kind
from p4c.model.limits import BITS_MAX, LEARN_LISTS_MAX
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.expressions import kinded
from p4c.model.loading.scope import LoadScope, choices, declare, named
from p4c.model.registers import Register


def read_externs(root: JsonCursor, scope: LoadScope) -> None:
    for at in root.list_of("extern_instances"):
        at.unsupported("extern instances are not supported")
    for at in root.list_of("counter_arrays"):
        declare(scope.counters, at, "counter", partial(_counter, at, scope))
    for at in root.list_of("meter_arrays"):
        declare(scope.meters, at, "meter", partial(_meter, at, scope))
    for at in root.list_of("register_arrays"):
        declare(scope.registers, at, "register", partial(_register, at, scope))
    for at in root.list_of("calculations"):
        declare(scope.calculations, at, "calculation", partial(_calculation, at, scope))
    for at in root.list_of("field_lists"):
        _read_field_list(at, scope)
    for at in root.list_of("learn_lists"):
        _read_learn_list(at, scope)


def _direct_table(at: JsonCursor) -> str | None:
    return at.get("binding").text() if at.get_or("is_direct", JsonCursor.boolean, False) else None


def _counter(at: JsonCursor, scope: LoadScope, name: str) -> externs.Counter:
    table = _direct_table(at)
    size = at.get("size").integer() if table is None else 0
    return externs.Counter(name, len(scope.counters), size, table, at.source())


def _meter(at: JsonCursor, scope: LoadScope, name: str) -> externs.Meter:
    table = _direct_table(at)
    size = at.get("size").integer() if table is None else at.get_or("size", JsonCursor.integer, 0)
    unit = at.get("type").text()
    if unit not in ("bytes", "packets"):
        at.fail(f"a meter counts 'bytes' or 'packets', not {unit!r}")
    rates = at.get("rate_count").integer()
    if rates != 2:
        at.unsupported(f"a meter with {rates} rates; only two-rate three-colour meters are supported")
    result = None if table is None else scope.stored_field(at.get("result_target"))
    return externs.Meter(name, len(scope.meters), size, unit == "bytes", table, result, at.source())


def _register(at: JsonCursor, scope: LoadScope, name: str) -> Register:
    size, width = at.get("size").integer(), at.get("bitwidth").integer(1, BITS_MAX)
    return Register(name, len(scope.registers), size, width, at.source())


def _calculation(at: JsonCursor, scope: LoadScope, name: str) -> externs.Calculation:
    inputs = calculation_inputs(at, scope)
    return externs.Calculation(name, len(scope.calculations), algorithm(at), inputs, at.source())


def algorithm(at: JsonCursor) -> str:
    name = at.get("algo").text()
    if name not in externs.HASH_ALGORITHMS:
        at.unsupported(f"unknown hash algorithm {name!r}; {choices(externs.HASH_ALGORITHMS)}")
    return name


def calculation_inputs(at: JsonCursor, scope: LoadScope, key: str = "input") -> tuple[externs.CalculationInput, ...]:
    inputs: list[externs.CalculationInput] = []
    payload = False
    for item in at.get(key).items():
        kind = item.get("type").text()
        if kind == "field":
            inputs.append(externs.FieldInput(scope.stored_field(item.get("value"))))
        elif kind == "hexstr":
            width = item.get("bitwidth").integer(1, BITS_MAX)
            inputs.append(externs.ConstInput(item.get("value").hexbits(width), width))
        elif kind == "header":
            inputs.append(externs.HeaderInput(named(scope.headers, item.get("value"), "header")))
        elif kind == "payload":
            payload = True
        else:
            item.unsupported(f"unknown input type {kind!r}; there are: field, header, hexstr, payload")
    if payload:
        inputs.append(externs.PayloadInput())
    return tuple(inputs)


def _read_field_list(at: JsonCursor, scope: LoadScope) -> None:
    number = at.get("id").integer()
    if number in scope.field_lists:
        at.fail(f"a second field list has id {number}")
    fields: list[FieldRef] = []
    for element in at.get("elements").items():
        kind = element.get("type").text()
        if kind != "field":
            element.unsupported(f"an element of type {kind!r}: only fields are supported in a field list")
        fields.append(scope.stored_field(element.get("value")))
    name = at.get_or("name", JsonCursor.text, str(number))
    scope.field_lists[number] = externs.FieldList(name, number, tuple(fields))


def _read_learn_list(at: JsonCursor, scope: LoadScope) -> None:
    number = at.get("id").integer()
    if number in scope.learn_lists:
        at.fail(f"a second learn list has id {number}")
    if len(scope.learn_lists) == LEARN_LISTS_MAX:
        at.unsupported(f"more than {LEARN_LISTS_MAX} learn lists")
    items: list[externs.FieldInput | externs.ConstInput] = []
    for item in calculation_inputs(at, scope, "elements"):
        varbit = isinstance(item, externs.FieldInput) and item.field.field.varbit
        if varbit or not isinstance(item, externs.FieldInput | externs.ConstInput):
            at.unsupported("a digest of anything but constants and fields with a fixed width")
        items.append(item)
    made = externs.LearnList(at.get("name").text(), number, tuple(items))
    if not 0 < sum(made.widths) <= BITS_MAX:
        at.fail(f"a digest has 1 to {BITS_MAX} bits, not {sum(made.widths)}")
    scope.learn_lists[number] = made


def read_checksums(root: JsonCursor, scope: LoadScope) -> tuple[externs.Checksum, ...]:
    checksums = []
    for at in root.list_of("checksums"):
        kind = at.get("type").text()
        if kind != "generic":
            at.unsupported(f"checksum type {kind!r}; only 'generic' is supported")
        condition = at.find("if_cond")
        checksums.append(
            externs.Checksum(
                at.get("name").text(),
                scope.stored_field(at.get("target")),
                named(scope.calculations, at.get("calculation"), "calculation"),
                None if condition is None else kinded(condition, scope, Kind.BOOL),
                at.get_or("verify", JsonCursor.boolean, True),
                at.get_or("update", JsonCursor.boolean, True),
                at.source(),
            )
        )
    return tuple(checksums)
