"""pipelines: action profiles, tables with their initial entries, conditionals, action calls."""

from functools import partial
from graphlib import CycleError, TopologicalSorter

from p4c.entries import ActionCall, Entry, Exact, Lpm, Match, Range, Ternary
from p4c.model import pipelines
from p4c.model.actions import Action
from p4c.model.expressions import Kind, ValidBit
from p4c.model.externs import Calculation, Counter, Meter
from p4c.model.limits import BITS_MAX
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.expressions import kinded
from p4c.model.loading.externs import algorithm, calculation_inputs
from p4c.model.loading.scope import LoadScope, declare, named, numbered, packet_header

_LOOSENESS = ("exact", "lpm", "ternary", "range")
_HIT, _MISS = "__HIT__", "__MISS__"


def read_pipeline(root: JsonCursor, name: str, scope: LoadScope) -> pipelines.Pipeline:
    matches = [at for at in root.list_of("pipelines") if at.get("name").text() == name]
    if len(matches) != 1:
        root.fail(f"pipelines must hold exactly one called {name!r}, as simple_switch expects")
    at = matches[0]
    profiles = tuple(
        declare(scope.profiles, profile, "action profile", partial(_profile, profile, scope))
        for profile in at.list_of("action_profiles")
    )
    sections = (*at.list_of("tables"), *at.list_of("conditionals"), *at.list_of("action_calls"))
    names = {node.get("name").text() for node in sections}
    nodes: dict[str, pipelines.Node] = {}
    for table in at.list_of("tables"):
        declare(nodes, table, "node", partial(_table, table, names, scope))
    for i, item in enumerate(at.list_of("conditionals")):
        declare(nodes, item, "node", partial(_conditional, i, item, names, scope))
    for i, item in enumerate(at.list_of("action_calls")):
        declare(nodes, item, "node", partial(_action_call, i, item, names, scope))
    try:
        TopologicalSorter({node.name: _followers(node) for node in nodes.values()}).prepare()
    except CycleError as error:
        at.fail(f"a packet could go round for ever: {', '.join(error.args[1])}")
    return pipelines.Pipeline(name, _next(at.find("init_table"), names), nodes, profiles, at.source())


def _followers(node: pipelines.Table | pipelines.Conditional | pipelines.ActionCallNode) -> set[str]:
    """The nodes to which a packet may go from this one."""
    if isinstance(node, pipelines.Conditional):
        names = {node.if_true, node.if_false}
    elif isinstance(node, pipelines.ActionCallNode):
        names = {node.next}
    else:
        names = {node.next_hit, node.next_miss, node.next_without_action, *node.next_by_action.values()}
    return {name for name in names if name is not None}


def _next(at: JsonCursor | None, names: set[str]) -> str | None:
    if at is None or at.value is None:
        return None
    if at.text() not in names:
        at.fail(f"no table, conditional or action call of this pipeline is called {at.text()!r}")
    return at.text()


def _conditional(index: int, at: JsonCursor, names: set[str], scope: LoadScope, name: str) -> pipelines.Conditional:
    condition = kinded(at.get("expression"), scope, Kind.BOOL)
    if_true, if_false = _next(at.find("true_next"), names), _next(at.find("false_next"), names)
    return pipelines.Conditional(name, index, condition, if_true, if_false, at.source())


def _action_call(index: int, at: JsonCursor, names: set[str], scope: LoadScope, name: str) -> pipelines.ActionCallNode:
    action = numbered(scope.actions_by_id, at.get("action_id"), "action")
    if action.parameters:
        at.fail(f"action {action.name!r} has parameters, so it cannot be called from the control")
    return pipelines.ActionCallNode(name, index, action, _next(at.find("next_node"), names))


def _profile(at: JsonCursor, scope: LoadScope, name: str) -> pipelines.ActionProfile:
    selector = None
    selector_at = at.find("selector")
    if selector_at is not None:
        selector = Calculation(f"{name}.selector", -1, algorithm(selector_at), calculation_inputs(selector_at, scope))
    return pipelines.ActionProfile(name, len(scope.profiles), at.get("max_size").integer(), selector, at.source())


def _table(at: JsonCursor, names: set[str], scope: LoadScope, name: str) -> pipelines.Table:
    kind = at.get("type").text()
    if kind not in ("simple", "indirect", "indirect_ws"):
        at.fail(f"a table is of type simple, indirect or indirect_ws, not {kind!r}")
    profile = None
    if kind != "simple":
        profile = named(scope.profiles, at.get("action_profile"), "action profile")
        if profile.has_groups != (kind == "indirect_ws"):
            at.fail(f"a table of type {kind} with {'an action selector' if profile.has_groups else 'no selector'}")
    keys = tuple(_key(k, scope) for k in at.get("key").items())
    if sum(k.match == "lpm" for k in keys) > 1:
        at.fail("a table may have one lpm field only")
    actions = _actions(at, scope)
    by_hit, next_hit, next_miss, by_action = _next_tables(at, actions, names)
    match = at.get("match_type").text()
    if match not in _LOOSENESS or any(_LOOSENESS.index(k.match) > _LOOSENESS.index(match) for k in keys):
        at.fail(f"the match type {match!r} does not cover the table's fields")
    if match == "lpm" and all(k.match == "exact" for k in keys):
        at.fail("a table of match type lpm needs an lpm field")
    if sum(key.width_bits for key in keys) > BITS_MAX:
        at.fail(f"the fields of a table's key may have {BITS_MAX} bits altogether")
    entries_at = at.find("entries")
    entries = () if entries_at is None else _entries(entries_at, keys, actions)
    if entries and profile is not None:
        at.fail("a table with an action profile cannot have initial entries")
    size = at.find("max_size")
    if size is None and entries_at is None:
        at.fail("a table needs max_size or entries")
    table = pipelines.Table(
        name=name,
        index=scope.table_count,
        match=match,
        keys=keys,
        actions=actions,
        max_size=len(entries) if size is None else max(size.integer(), len(entries)),
        default=_default(at.find("default_entry"), actions, scope),
        initial=entries,
        const_entries=entries_at is not None,
        profile=profile,
        counter=_direct_counter(name, at, scope),
        meter=_direct_meter(name, at, scope),
        support_timeout=at.get_or("support_timeout", JsonCursor.boolean, False),
        by_hit=by_hit,
        next_hit=next_hit,
        next_miss=next_miss,
        next_by_action=by_action,
        next_without_action=next_miss if by_hit else _next(at.find("base_default_next"), names),
        source=at.source(),
    )
    scope.table_count += 1
    return table


def _key(at: JsonCursor, scope: LoadScope) -> pipelines.Key:
    match, target = at.get("match_type").text(), at.get("target")
    if match == "valid":
        header = packet_header(scope.headers, target)
        return pipelines.Key(at.get_or("name", JsonCursor.text, header.name), "exact", ValidBit(header), 1)
    if match not in _LOOSENESS:
        at.unsupported(f"the match type {match!r}; there are: {', '.join(_LOOSENESS)}, valid")
    field = scope.field(target)
    width = 1 if isinstance(field, ValidBit) else field.field.width_bits
    mask = at.find("mask")
    name = at.get_or("name", JsonCursor.text, ".".join(part.text() for part in target.items()))
    full = (1 << width) - 1
    return pipelines.Key(name, match, field, width, None if mask is None else mask.hexbits((width + 7) // 8 * 8) & full)


def _actions(at: JsonCursor, scope: LoadScope) -> tuple[Action, ...]:
    ids = at.find("action_ids")
    if ids is not None:
        actions = tuple(numbered(scope.actions_by_id, a, "action") for a in ids.items())
    else:
        first: dict[str, Action] = {}
        for action in scope.actions_by_id.values():
            first.setdefault(action.name, action)
        actions = tuple(named(first, a, "action") for a in at.get("actions").items())
    if len({a.name for a in actions}) != len(actions):
        at.fail("two actions of the table have the same name")
    return actions


def _next_tables(
    at: JsonCursor, actions: tuple[Action, ...], names: set[str]
) -> tuple[bool, str | None, str | None, dict[str, str | None]]:
    next_at = at.get("next_tables")
    following = {key: _next(value, names) for key, value in next_at.members()}
    if _HIT in following or _MISS in following:
        if set(following) != {_HIT, _MISS}:
            next_at.fail(f"with {_HIT} or {_MISS}, next_tables must hold both and nothing else")
        return True, following[_HIT], following[_MISS], {}
    missing = [a.name for a in actions if a.name not in following]
    if missing:
        next_at.fail(f"next_tables has no entry for the action {missing[0]!r}")
    return False, None, None, following


def _direct_counter(name: str, at: JsonCursor, scope: LoadScope) -> Counter | None:
    if not at.get_or("with_counters", JsonCursor.boolean, False):
        return None
    counter = next((c for c in scope.counters.values() if c.table == name), None)
    if counter is None:  # simple_switch also counts without a counter_arrays entry
        counter = Counter(f"{name}$counter", len(scope.counters), 0, name)
        scope.counters[counter.name] = counter
    return counter


def _direct_meter(name: str, at: JsonCursor, scope: LoadScope) -> Meter | None:
    meter_at = at.find("direct_meters")
    if meter_at is None:
        return None
    meter = named(scope.meters, meter_at, "meter")
    if meter.table != name:
        meter_at.fail(f"the meter {meter.name!r} belongs to {meter.table or 'no table'}, not to {name!r}")
    return meter


def _arguments(at: JsonCursor, action: Action) -> tuple[int, ...]:
    values = at.items()
    if len(values) != len(action.parameters):
        at.fail(f"action {action.name!r} takes {len(action.parameters)} arguments, not {len(values)}")
    return tuple(v.hexbits(p.width_bits) for v, p in zip(values, action.parameters, strict=True))


def _default(at: JsonCursor | None, actions: tuple[Action, ...], scope: LoadScope) -> pipelines.DefaultAction | None:
    if at is None:
        return None
    action = numbered(scope.actions_by_id, at.get("action_id"), "action")
    if action not in actions:
        at.fail(f"the default action {action.name!r} is not an action of the table")
    const = [at.get_or(key, JsonCursor.boolean, False) for key in ("action_const", "action_entry_const")]
    return pipelines.DefaultAction(action, _arguments(at.get("action_data"), action), any(const))


def _entries(
    at: JsonCursor, keys: tuple[pipelines.Key, ...], actions: tuple[Action, ...]
) -> tuple[pipelines.InitialEntry, ...]:
    items = at.items()
    # In the JSON the smaller number wins; in P4Runtime and here the larger one does.
    numbers = [item.get_or("priority", JsonCursor.integer, 0) for item in items]
    top = max(numbers, default=0) + 1
    by_id = {a.id: a for a in actions}
    looser = any(k.match in ("ternary", "range") for k in keys)
    entries: list[pipelines.InitialEntry] = []
    for item, number in zip(items, numbers, strict=True):
        match_at = item.get("match_key").items(len(keys))
        matches = tuple(_match(m, k) for m, k in zip(match_at, keys, strict=True))
        action_at = item.get("action_entry")
        action = numbered(by_id, action_at.get("action_id"), "action of this table")
        call = ActionCall(action.name, _arguments(action_at.get("action_data"), action))
        entry = Entry(matches, call, top - number if looser else 0)
        entries.append(pipelines.InitialEntry(entry, number, item.source()))
    seen = {(initial.entry.matches, initial.entry.priority) for initial in entries}
    if len(seen) != len(entries):
        at.fail("two initial entries match the same keys with the same priority")
    return tuple(entries)


def _match(at: JsonCursor, key: pipelines.Key) -> Match:
    kind = at.get("match_type").text()
    width = key.width_bits
    if kind == "valid" and isinstance(key.target, ValidBit):
        return Exact(int(at.get("key").boolean()))
    if kind != key.match:
        at.fail(f"a match of type {kind!r} for the field {key.name!r}, which is {key.match}")
    if kind == "exact":
        return Exact(at.get("key").hexbits(width))
    if kind == "lpm":
        length = at.get("prefix_length").integer(maximum=width)
        mask = (1 << width) - (1 << (width - length))
        return Lpm(at.get("key").hexbits(width) & mask, length)
    if kind == "ternary":
        mask = at.get("mask").hexbits(width)
        return Ternary(at.get("key").hexbits(width) & mask, mask)
    return Range(at.get("start").hexbits(width), at.get("end").hexbits(width))
