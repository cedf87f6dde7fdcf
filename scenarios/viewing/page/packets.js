// Sampled packets on their way: each was journalled when it was sent and, unless it was lost, when it arrived.
// Where it was in between follows from the lengths of the path's cables: only the two ends are recorded.

import { shape } from "./shapes.js";

const LOST_RTTS = 3; // a packet that nobody has received for so long is drawn as lost

export function drawPackets(ctx, place, scene, view) {
  for (const { path, share, kind, resent } of flying(scene, view)) {
    if (view.pair && !(path.source === view.pair[0] && path.destination === view.pair[1])) continue;
    const spot = along(place, path, share);
    if (kind === "lost") shape(ctx, "drop", spot.x, spot.y, place.unit * 0.36, view.colours);
    else if (kind === "trimmed") shape(ctx, "trims", spot.x, spot.y, place.unit * 0.36, view.colours);
    else if (resent) shape(ctx, "resent", spot.x, spot.y, place.unit * 0.24, view.colours);
    else shape(ctx, kind === "marked" ? "marks" : "probes", spot.x, spot.y, place.unit * 0.24, view.colours);
  }
}

// The sampled packets that are under way at the present instant.
export function flying(scene, view) {
  const { record, t } = view;
  if (!record?.packets.length) return [];
  const rtt = scene.plan.base_rtt_ns;
  const arrivals = new Map();
  for (const line of record.packetsBetween(t - rtt, t + 4 * rtt)) {
    if (line.side === "received") push(arrivals, key(line.peer, line.node, line), line);
  }
  const found = [];
  for (const line of record.packetsBetween(t - LOST_RTTS * rtt, t)) {
    if (line.side !== "sent") continue;
    const path = scene.pathOfEv(line.node, line.peer, line.ev);
    if (!path) continue;
    const arrival = (arrivals.get(key(line.node, line.peer, line)) ?? []).find((one) => one.t_ns >= line.t_ns);
    if (arrival) {
      const share = (t - line.t_ns) / Math.max(1, arrival.t_ns - line.t_ns);
      if (share <= 1) found.push({ line, arrival, path, share, resent: line.resent, kind: arrival.trimmed ? "trimmed" : arrival.marked ? "marked" : "whole" });
    } else if (t - line.t_ns > rtt && record.end - line.t_ns > LOST_RTTS * rtt && !recently(record, line, rtt)) {
      found.push({ line, path, share: 0.5, kind: "lost" });
    }
  }
  return found;
}

// Whether an arrival was journalled at all, before or after the part that was looked at.
function recently(record, line, rtt) {
  return record.packetsBetween(line.t_ns, line.t_ns + 20 * rtt)
    .some((one) => one.side === "received" && one.node === line.peer && one.psn === line.psn && one.ev === line.ev && one.peer === line.node);
}

function key(source, destination, line) {
  return `${source} ${destination} ${line.qp} ${line.psn} ${line.ev}`;
}

function push(map, name, value) {
  const list = map.get(name);
  if (list) list.push(value);
  else map.set(name, [value]);
}

function along(place, path, share) {
  const spots = path.nodes.map((name) => place.at.get(name));
  const hops = spots.length - 1;
  const at = Math.min(Math.floor(share * hops), hops - 1);
  const rest = share * hops - at;
  return { x: spots[at].x + (spots[at + 1].x - spots[at].x) * rest, y: spots[at].y + (spots[at + 1].y - spots[at].y) * rest };
}
