// What a state looks like on a fabric: for each cable and node its condition, load, queue and what was counted there.

import { counted, hostSamples, portRate, switchSamples, usable } from "./fold.js";

// Of several faults on one thing, the one further to the left is drawn.
const ORDER = ["dead", "crashed", "stopped", "lossy", "late", "slow", "drained"];

export function looks(scene, state, verbs) {
  const cables = new Map(), nodes = new Map();
  const condition = (map, name, kind, text) => {
    const found = map.get(name) ?? { kind, texts: [] };
    if (ORDER.indexOf(kind) < ORDER.indexOf(found.kind)) found.kind = kind;
    found.texts.push(text);
    map.set(name, found);
  };
  for (const line of state.faults.values()) {
    const verb = verbs.get(line.verb);
    if (!verb) continue;
    const text = `${line.verb}${line.arguments?.value === undefined ? "" : ` ${line.arguments.value}`}`;
    if (verb.target === "switch") condition(nodes, line.target, verb.looks, text);
    else if (verb.target === "nic") {
      for (const cable of scene.cables) if (cable.a === line.target) condition(cables, cable.name, verb.looks, text);
    } else {
      const cable = scene.cableOf(line.target);
      if (cable) condition(cables, cable.name, verb.looks, text);
    }
  }
  return { cables, nodes, left: left(state), counts: counts(state) };
}

// By the highest switch of a path: how many senders have given the path up, and how many deny it.
function left(state) {
  const found = new Map();
  for (const line of state.evs.values()) {
    if (usable(line.new)) continue;
    const key = line.via?.split("+").at(-1) ?? `p${line.plane} local`;
    const row = found.get(key) ?? { bad: 0, denied: 0 };
    if (line.new === "denied") row.denied += 1;
    else row.bad += 1;
    found.set(key, row);
  }
  return found;
}

// By host: the counts of its queue pairs between its last two samples.
function counts(state) {
  const found = new Map();
  for (const host of state.samples.keys()) {
    const pair = hostSamples(state, host);
    if (!pair) continue;
    const row = {
      trims: counted(pair, "trims"), marks: counted(pair, "ecn"), resent: counted(pair, "retransmits"),
      timeouts: counted(pair, "rto"), probes: counted(pair, "probes"),
    };
    if (Object.values(row).some(Boolean)) found.set(host, row);
  }
  return found;
}

// A cable's load as a share of its rate, the fuller direction; null where nothing was measured.
export function load(scene, state, cable) {
  if (cable.edge) {
    const pair = hostSamples(state, cable.a);
    if (!pair) return null;
    const up = portRate(pair, cable.aPort, "tx_bytes"), down = portRate(pair, cable.aPort, "rx_bytes");
    return up === null ? null : Math.max(up, down) / cable.rate;
  }
  const lower = switchSamples(state, cable.a), upper = switchSamples(state, cable.b);
  const up = lower && portRate(lower, cable.aPort, "tx_bytes"), down = upper && portRate(upper, cable.bPort, "tx_bytes");
  return up === null && down === null || up === undefined && down === undefined ? null : Math.max(up ?? 0, down ?? 0) / cable.rate;
}

// The longest queue at either end, as a share of the length at which packets are trimmed; null where not measured.
export function queue(scene, state, cable) {
  let most = null;
  for (const [node, port] of [[cable.a, cable.aPort], [cable.b, cable.bPort]]) {
    const row = state.switches.get(node)?.[1].ports.find((one) => one.port === port);
    if (row?.queue_bytes !== undefined) most = Math.max(most ?? 0, row.queue_bytes / scene.plan.queue_bytes_max);
  }
  return most;
}

// Packets that died at either end between the last two samples, and at which end; null where not measured.
export function dropped(state, cable) {
  let none = null;
  for (const [node, port, toB] of [[cable.a, cable.aPort, true], [cable.b, cable.bPort, false]]) {
    const pair = switchSamples(state, node);
    const late = pair?.[1].ports.find((row) => row.port === port), early = pair?.[0].ports.find((row) => row.port === port);
    if (!late || !early || pair[0] === pair[1]) continue;
    let sum = 0;
    for (const field of Object.keys(late).filter((name) => name.startsWith("drop_")))
      sum += Math.max(0, (late[field] ?? 0) - (early[field] ?? 0));
    if (sum) return { count: sum, toB };
    none = { count: 0, toB };
  }
  return none;
}

// The state of each path of a pair, over all its queue pairs: the worst counts.
export function pathStates(scene, state, source, destination) {
  const rank = ["good", "skip", "assumed_bad", "denied"];
  const found = new Map();
  for (const line of state.evs.values()) {
    if (line.node !== source || line.peer !== destination) continue;
    const ev = scene.knownEv(source, destination, line.ev), before = found.get(ev);
    if (!before || rank.indexOf(line.new) > rank.indexOf(before.new)) found.set(ev, line);
  }
  return found;
}
