// What the panel says of a chosen node or cable, and of the whole run when nothing is chosen.

import { element, table } from "./element.js";
import { dropped, load, queue } from "../run/look.js";
import { counted, goodput, hostSamples, portRate, switchSamples } from "../run/fold.js";
import { SHAPES } from "../drawing/shapes.js";
import { rate, span, value } from "../words.js";

const UNKNOWN = "not measured here";

export function aboutNode(scene, state, node) {
  const rows = [["kind", node.tier === 0 ? "host" : `${["leaf", "spine", "core"][node.tier - 1]}, ${scene.kinds[node.name]}`],
    ["uSID", `0x${node.usid.toString(16)}${node.tier ? "" : " (of the NIC, at its leaves)"}`]];
  const known = (node.tier ? state.switches : state.samples).get(node.name);
  const pair = (node.tier ? switchSamples : hostSamples)(state, node.name);
  if (state.states.has(node.name)) rows.push(["state", state.states.get(node.name)]);
  if (pair && node.tier === 0) {
    if (pair[0] !== pair[1]) for (const [field, words] of [["trims", "trimmed"], ["ecn", "marked"], ["retransmits", "sent again"], ["rto", "timeouts"], ["nacks", "NACKs"]]) {
      rows.push([words, `${counted(pair, field)} since the sample before`]);
    }
    for (const qp of pair[1].qps) rows.push([`QP ${qp.qp} → ${qp.peer ?? "?"}`, `cwnd ${qp.cwnd_bytes ?? "?"} B, in flight ${qp.inflight_bytes ?? "?"} B, RTT ${qp.rtt_ns === undefined ? "?" : span(qp.rtt_ns)}`]);
  }
  if (known) for (const { port } of known[1].ports) rows.push([`port ${port}`, rates(pair, port)]);
  else rows.push(["counters", "none journalled up to here"]);
  return [element("h2", {}, node.name), plain(rows)];
}

// What a port sends and receives between two different samples.
function rates(pair, port) {
  const sent = pair ? portRate(pair, port, "tx_bytes") : null;
  return sent === null ? UNKNOWN : `sends ${rate(sent)}, receives ${rate(portRate(pair, port, "rx_bytes"))}`;
}

export function aboutCable(scene, state, cable) {
  const carried = load(scene, state, cable), filled = queue(scene, state, cable), lost = dropped(state, cable);
  return [element("h2", {}, cable.name), plain([
    ["load", carried === null ? UNKNOWN : `${(carried * 100).toFixed(0)} % of ${rate(cable.rate)}`],
    ["queue", filled === null ? UNKNOWN : `${(filled * 100).toFixed(0)} % of the length that trims`],
    ["dropped", lost === null ? UNKNOWN : lost.count ? `${lost.count} since the previous sample` : "none"],
    ["ports", `${cable.a}:${cable.aPort} ↔ ${cable.b}:${cable.bPort}`],
  ])];
}

export function aboutRun(lane, state) {
  const { record, scene } = lane, options = { ...scene.options, ...record.options };
  const rows = [["plan", `${scene.plan.name}: ${scene.plan.words}, ${scene.hosts.length} hosts`]];
  if (options.scenario) rows.push(["scenario", `${options.scenario}, ${options.transport}, seed ${options.seed}`], ["world", options.world === "simulated" ? "virtual time" : "real links"]);
  let abandoned = 0;
  for (const line of state.evs.values()) abandoned += line.new !== "good" && line.new !== "skip";
  const now = goodput(state);
  if (now !== null) rows.push(["goodput", rate(now)]);
  if (record.lines.length) rows.push(["phase", state.phase ?? "—"], ["steps", `${state.steps} ranks' steps done`], ["paths abandoned", String(abandoned)]);
  if (state.loss) rows.push(["loss", `${state.loss.loss} after step ${state.loss.step} of ${state.loss.workload}`]);
  const faults = [...state.faults.values()].map((line) => `${line.verb} ${line.target}${value(line)}${line.by_hand ? " (by hand)" : ""}`);
  rows.push(["faults", faults.length ? faults.join(", ") : "none in force"]);
  if (state.error) rows.push(["error", state.error.message]);
  return [element("h2", {}, lane.title), plain(rows)];
}

export function legend(colours, draw) {
  const shapes = Object.keys(SHAPES).map((kind) => {
    const canvas = element("canvas", { width: 22, height: 22, className: "sign" });
    canvas.style.cssText = "width:1.1em;height:1.1em;display:inline-block;vertical-align:-.2em";
    draw(canvas.getContext("2d"), kind, 11, 11, 6, colours);
    return element("span", {}, canvas, ` ${SHAPES[kind].name} `);
  });
  return [element("h2", {}, "signs"), element("div", { className: "row" }, shapes),
    element("p", { className: "why" }, "Numbers at hosts count since the previous sample. Lines are thicker and bluer with load, and dotted where load is not sampled. Signs: ✕ dead, % lossy, … late, ▾ slow, ■ stopped, ⊘ drained. ● is data on its way and ○ an answer: one in 8 packets of the packet log. Without a packet log, signs in a ring are packets that both ends sampled, on the path of their EV.")];
}

function plain(rows) {
  return table([], rows.map(([name, value]) => element("tr", {}, element("td", { className: "soft" }, name), element("td", {}, value))));
}
