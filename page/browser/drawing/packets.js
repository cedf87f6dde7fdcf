// Packets on their way. From the packet log of a run in virtual time (docs/contracts.md, "Packet log"): where each of
// its bits was at every instant is recorded. Elsewhere from what both ends sampled: the EV names the path, and the
// place on it is between the times at its ends. Those wear a ring.

import { underWay } from "../run/flights.js";
import { shape } from "./shapes.js";

const SHOWN_MAX = 400;
const LONGEST_RTTS = 8; // of a sampled packet and its answer, through full queues
const ENDED = new Set(["sent", "received"]);

// The packets to be drawn at an instant, each with its spot on the screen.
export function shownPackets(place, scene, view) {
  const { record, t, pair } = view, shown = [], rtt = scene.plan.base_rtt_ns;
  const logged = record.packets.length ? record.packetsBetween(t - Math.max(rtt, record.longestNs), t) : [];
  if (!logged.length) {
    for (const flight of record.flights.between(t - LONGEST_RTTS * rtt, t)) {
      const found = of(pair, flight.source, flight.destination) && underWay(place, scene, flight, t);
      if (found && shown.push(found) === SHOWN_MAX) break;
    }
  }
  for (const line of logged) {
    if (!of(pair, line.src, line.dst)) continue;
    const spot = ENDED.has(line.fate) ? onCable(place, line, t) : t - line.t_ns < rtt && place.at.get(line.node);
    if (spot && shown.push({ line, spot }) === SHOWN_MAX) break;
  }
  return shown;
}

function of(pair, one, other) {
  return !pair || (one === pair[0] && other === pair[1]) || (one === pair[1] && other === pair[0]);
}

export function drawPackets(ctx, place, packets, colours) {
  for (const { line, spot } of packets) sign(ctx, line, spot, place.unit, colours);
}

// Where the first bits are: between leaving a node and arriving, in full, at the next one.
function onCable(place, line, t) {
  if (line.fate !== "sent" || line.arrives_ns < t || !line.to) return null;
  const from = place.at.get(line.node), to = place.at.get(line.to);
  const share = (t - line.t_ns) / Math.max(1, line.arrives_ns - line.t_ns);
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}

export function trimmed(line) {
  return line.bytes_in > line.bytes && line.bytes > 0;
}

function sign(ctx, line, spot, unit, colours) {
  if (!ENDED.has(line.fate)) shape(ctx, "drop", spot.x, spot.y, unit * 0.36, colours);
  else if (trimmed(line) || line.trimmed) shape(ctx, "trims", spot.x, spot.y, unit * 0.34, colours);
  else if (line.op === "PATH_PROBE") shape(ctx, "probes", spot.x, spot.y, unit * 0.24, colours);
  else {
    const control = !line.op?.includes("WRITE");
    ctx.beginPath();
    ctx.arc(spot.x, spot.y, unit * (control ? 0.16 : 0.26), 0, 7);
    ctx.fillStyle = control ? colours.paper : colours.ink;
    ctx.strokeStyle = colours.ink;
    ctx.lineWidth = 1.2;
    ctx.fill();
    ctx.stroke();
  }
  if (line.derived) {
    ctx.beginPath();
    ctx.arc(spot.x, spot.y, unit * 0.42, 0, 7);
    ctx.strokeStyle = colours.busy;
    ctx.lineWidth = 1.2;
    ctx.stroke();
  }
}
