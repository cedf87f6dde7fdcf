// What the receiver did with a packet of the run: received, placed, answered; from the packet log or from samples.

import { element } from "./element.js";
import { ev, span } from "../words.js";

// What both ends sampled, in the shape of `page/live.py`.
export function answerOf({ sent, received, answered, destination }) {
  return {
    received: received ? { t_ns: received.t_ns, node: destination, bytes: received.bytes, trimmed: Boolean(received.trimmed) } : null,
    placed: received && !received.trimmed && received.va !== null ? { va: received.va, payload: received.payload } : null,
    answered: answered ? { t_ns: null, op: answered.op, ev: answered.answer_ev, psn: answered.cumulative_psn ?? answered.psn, sacked: answered.sacked, came_ns: answered.t_ns } : null,
    left_ns: sent?.t_ns,
  };
}

// What the log's own lines tell of a packet, in the same shape. Answers are looked up in the whole log: undefined here.
export function loggedAnswerOf({ packet }, record) {
  const last = record.packets.findLast((line) => line.packet === packet);
  if (last.fate !== "received") return { received: null, placed: null, answered: null };
  const whole = !last.trimmed && last.va !== null;
  return { received: last, placed: whole ? { va: last.va, payload: last.payload } : null, answered: undefined };
}

export function sampled({ source, destination, sent, received, psn, qp }) {
  const { op, bytes, retransmission } = sent ?? received;
  return [element("p", { className: "soft" }, `${op}, PSN ${psn}, to QP ${qp}, ${bytes} B${retransmission ? ", sent again" : ""}, from ${source} to ${destination}. `
    + "Of one packet in 256 both ends write what they see; the switches between are not asked, so its times inside the fabric are not known.")];
}

export function received(packet, answer, lane) {
  const title = element("h2", {}, `at ${packet.destination ?? packet.dst}, the receiver`);
  if (!answer) return [title, element("p", { className: "soft" }, "looking …")];
  return [title, element("table", { id: "receiver" }, rows(packet, answer, lane).map(([name, value, bad]) =>
    element("tr", {}, element("td", { className: "soft" }, name), element("td", { className: bad ? "bad" : "" }, value))))];
}

function rows(packet, { received: came, placed, answered, left_ns }, lane) {
  if (!came) return [["received", packet.packet ? "no: the lines above say where it ended" : "not up to here: it was lost, or is on its way", true]];
  const left = left_ns ?? firstLeft(packet, lane);
  const after = left === undefined ? "" : `, ${span(came.t_ns - left)} after it left`;
  const found = [["received", `${came.bytes} B${after}${came.trimmed ? "; trimmed: its payload stayed in the fabric" : ""}`]];
  found.push(["placed", placed ? where(placed, came.node, lane) : came.trimmed ? "nothing" : "its first bytes do not say where", came.trimmed]);
  if (answered === undefined) return [...found, ["answered", "needs ./lab view: an exported file cannot search the packet log"]];
  if (!answered) return [...found, ["answered", "no answer recorded"]];
  const reply = answered.t_ns === null ? "" : answered.t_ns === came.t_ns ? " at once" : `, ${span(answered.t_ns - came.t_ns)} later`;
  const back = answered.came_ns === null || answered.came_ns === undefined ? "; the sender did not get it up to here" : `; the sender has it ${span(answered.came_ns - (answered.t_ns ?? came.t_ns))} ${answered.t_ns === null ? "after that" : "after"}`;
  return [...found, ["answered", `${answered.op}${reply}: ${what(answered, packet.psn)}, on EV ${ev(answered.ev)}${back}`]];
}

function firstLeft(packet, lane) {
  return lane.record.packets.find((line) => line.packet === packet.packet && line.port_in === null)?.t_ns;
}

// Where the payload lies: address, length, and its place in the memory that the peer writes to.
function where({ va, payload }, node, lane) {
  const memory = lane.record.memoryAt(node, va);
  const inside = memory ? `: offset ${(va - memory.va).toLocaleString("en")} of ${memory.length.toLocaleString("en")} B that ${memory.peer} writes to (workload ${memory.workload})` : "";
  return `${payload} B at address 0x${va.toString(16)}${inside}`;
}

// What an answer says of this PSN.
function what({ op, psn, sacked }, own) {
  if (op === "NACK") return `PSN ${own} refused, to be sent again at once`;
  const range = sacked?.find(([first, last]) => ((own - first) & 0xffffff) <= ((last - first) & 0xffffff));
  if (range) return `PSNs ${range[0]} to ${range[1]} have arrived, beyond the cumulative ${psn}`;
  return `everything up to PSN ${psn} has arrived`;
}
