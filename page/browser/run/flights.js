// Sampled packets: both ends' journal lines about one data packet in so many (docs/contracts.md, `sampled`), paired.

import { upTo } from "./search.js";

export class Flights {
  constructor() {
    this.all = []; // by the time of their first line
    this.open = new Map();
  }

  add(line) {
    const [source, destination] = line.what === "received" ? [line.peer, line.node] : [line.node, line.peer];
    const key = [source, destination, line.qp, line.psn].join();
    let flight = this.open.get(key);
    if (!flight || (line.what === "sent" && flight.sent && flight.sent !== line)) {
      flight = { t_ns: line.t_ns, source, destination, ev: line.ev, psn: line.psn, qp: line.qp };
      this.open.set(key, flight);
      this.place(flight);
    }
    flight[line.what] ??= line;
    if (line.t_ns < flight.t_ns) { // files of several writers are read one after another
      this.all.splice(this.all.indexOf(flight), 1);
      flight.t_ns = line.t_ns;
      this.place(flight);
    }
  }

  place(flight) {
    const at = !this.all.length || this.all.at(-1).t_ns <= flight.t_ns ? this.all.length : upTo(this.all, flight.t_ns);
    this.all.splice(at, 0, flight);
  }

  // Those that began between two instants.
  between(from, to) {
    return this.all.slice(upTo(this.all, from), upTo(this.all, to));
  }
}

// Where a flight is at `t`, as a line of the packet log would have it, with its spot; null when it is nowhere known.
export function underWay(place, scene, flight, t) {
  const { sent, received, answered } = flight;
  if (!sent || !received) return null;
  if (t < received.t_ns) {
    const share = (t - sent.t_ns) / Math.max(1, received.t_ns - sent.t_ns);
    const spot = along(place, scene, flight.source, flight.destination, flight.ev, share);
    return spot && { spot, line: { fate: "sent", op: sent.op, trimmed: received.trimmed && share > 0.5, derived: true } };
  }
  if (!answered || t >= answered.t_ns) return null;
  const share = (t - received.t_ns) / Math.max(1, answered.t_ns - received.t_ns);
  const spot = along(place, scene, flight.destination, flight.source, answered.answer_ev, share);
  return spot && { spot, line: { fate: "sent", op: answered.op, derived: true } };
}

// A place on the path that an EV names. Where ECMP chooses, the first and the last cable alone are known.
function along(place, scene, source, destination, ev, share) {
  const known = scene.plan.encapsulation === "srv6";
  const path = known ? scene.pathOfEv(source, destination, ev) : scene.paths(source, destination)[0];
  if (!path) return null;
  const cables = path.nodes.length - 1, at = Math.min(share * cables, cables - 1e-9), index = Math.floor(at);
  if (!known && index > 0 && index < cables - 1) return null;
  const from = place.at.get(path.nodes[index]), to = place.at.get(path.nodes[index + 1]);
  return { x: from.x + (to.x - from.x) * (at - index), y: from.y + (to.y - from.y) * (at - index) };
}
