// The state of a run at an instant: a pure fold over its journal lines (docs/contracts.md, "Journal").

export function begin() {
  return {
    t: 0, phase: null, faults: new Map(), evs: new Map(), planes: new Map(), links: new Map(), qps: new Map(),
    announced: new Map(), samples: new Map(), switches: new Map(), states: new Map(), steps: 0, loss: null, error: null, ended: false, last: null, virtual: false,
  };
}

// A copy that `apply` may change while the original stays: lines themselves are shared and never changed.
export function copy(state) {
  const made = { ...state };
  for (const key of Object.keys(state)) if (state[key] instanceof Map) made[key] = new Map(state[key]);
  return made;
}

export function apply(state, line) {
  state.t = line.t_ns;
  switch (line.kind) {
    case "sample": sample(line.device ? state.switches : state.samples, line.device ?? line.node, line); break;
    case "phase": phase(state, line); break;
    case "options": state.virtual = line.world === "simulated"; break;
    case "fault": fault(state, line); break;
    case "ev": state.evs.set(`${line.node} ${line.qp} ${line.ev}`, line); break;
    case "qp": state.qps.set(`${line.node} ${line.qp}`, line); break;
    case "plane": state.planes.set(`${line.node} ${line.side} ${line.peer ?? ""} ${line.plane}`, line); break;
    case "link": state.links.set(`${line.node} ${line.a} ${line.b}`, line); break;
    case "switch": state.states.set(line.node, line.state); break;
    case "step": step(state, line); break;
    case "error": state.error = line; break;
    case "tables": if (line.action === "verify") state.ended = true; break;
  }
  if (isEvent(line)) state.last = line;
}

// What people step to: everything but counters and the packets themselves.
const QUIET = new Set(["sample", "cpu", "hiccup", "step", "process", "options", "packet", "sampled", "memory", "transfer", "tables", "workload", "port", "program"]);
export function isEvent(line) {
  return !QUIET.has(line.kind);
}

export function faultKey(line) {
  const ends = line.target.includes(">") ? line.target : line.target.split(/[-–]/).sort().join("-");
  const value = line.arguments?.value;
  return `${line.verb} ${ends}${value === undefined ? "" : ` ${value}`}`;
}

// Whether an EV's state lets the sender use the path.
export function usable(state) {
  return state === "good" || state === "skip";
}

// The last two samples of a node, and the longer one of its last two intervals: at the end of a run one is short.
function sample(map, name, line) {
  const [before, last] = map.get(name) ?? [line, line];
  map.set(name, [last, line, Math.max(last.t_ns - before.t_ns, line.t_ns - last.t_ns)]);
}

function step(state, line) {
  state.steps += 1;
  if (line.loss !== undefined) state.loss = line; // a program that trains; one rank of it says so
}

function phase(state, line) {
  if (line.state === "start") state.phase = line.name;
  else if (state.phase === line.name) state.phase = null;
}

// A fault may be in force more than once, with different seeds of its chance. On real links the runner announces what the
// lab then carries out: the lab's line of the same is no other fault. In virtual time lab lines are changes by hand only.
function fault(state, line) {
  const key = faultKey(line), byHand = line.node !== "runner";
  if (!byHand) {
    if (!state.virtual) state.announced.set(key, line.state);
  } else if (state.announced.get(key) === line.state) {
    return void state.announced.delete(key);
  }
  const before = state.faults.get(key), count = (before?.count ?? 0) + (line.state === "end" ? -1 : 1);
  if (count > 0) state.faults.set(key, { ...(before ?? { ...line, by_hand: byHand }), count });
  else state.faults.delete(key);
}

const STALE_INTERVALS = 4, STALE_NS = 1e9; // after both, a sample is not late any more: none has been written

function stale(state, [, last, interval]) {
  return state.t - last.t_ns > Math.max(STALE_INTERVALS * interval, STALE_NS);
}

// A host's last two samples; undefined where it is not measured any more, because its agent has ended.
export function hostSamples(state, name) {
  const pair = state.samples.get(name);
  return pair && pair[0] !== pair[1] && stale(state, pair) ? undefined : pair;
}

// A switch's last two samples. On real links it writes one only when a counter has changed: without, all is as it was.
export function switchSamples(state, name) {
  const pair = state.switches.get(name);
  const still = pair && (pair[0] === pair[1] ? !state.virtual && state.t > pair[1].t_ns : stale(state, pair));
  return still ? [pair[1], { ...pair[1], t_ns: state.t }] : pair;
}

// Rates between a node's last two samples.

export function seconds([before, after]) {
  return (after.t_ns - before.t_ns) / 1e9;
}

export function portRate(pair, port, field) {
  const late = pair[1].ports.find((row) => row.port === port);
  const early = pair[0].ports.find((row) => row.port === port);
  const s = seconds(pair);
  return !late || !early || s <= 0 ? null : Math.max(0, ((late[field] ?? 0) - (early[field] ?? 0)) * 8 / s);
}

// What all hosts had acknowledged between their last two samples, bit/s; null where no host has two of late.
export function goodput(state) {
  let sum = null;
  for (const name of state.samples.keys()) {
    const pair = hostSamples(state, name);
    if (!pair) continue;
    const s = seconds(pair), acked = ({ qps }) => (qps ?? []).reduce((bytes, qp) => bytes + (qp.acked_bytes ?? 0), 0);
    if (s > 0) sum = (sum ?? 0) + Math.max(0, acked(pair[1]) - acked(pair[0])) * 8 / s;
  }
  return sum;
}

// How often something was counted between the two samples, over all queue pairs of a host.
export function counted(pair, field) {
  const before = new Map((pair[0].qps ?? []).map((qp) => [qp.qp, qp[field] ?? 0]));
  let sum = 0;
  for (const qp of pair[1].qps ?? []) sum += Math.max(0, (qp[field] ?? 0) - (before.get(qp.qp) ?? 0));
  return sum;
}
