// Where things are on the screen: planes as lanes, their tiers above each other, hosts below all. A plane whose upper
// switches would stand too close is folded into strips, one cell a switch; a person may fold and unfold each.

const SPINE_PIXELS_MIN = 13;
const FOLDED_WEIGHT = 1, UNFOLDED_WEIGHT = 5;

export function layout(scene, width, height, unit, unfolded) {
  const { planes, lane_width: places } = scene.plan;
  const most = widest(scene), tiers = most.length - 1;
  const gap = unit * 1.1;
  const room = width - gap * (planes + 1);
  const crowded = room / planes / Math.max(1, ...most.slice(2)) < SPINE_PIXELS_MIN;
  const weights = Array.from({ length: planes }, (_, plane) => !crowded || unfolded.has(plane) ? UNFOLDED_WEIGHT : FOLDED_WEIGHT);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const lanes = [];
  let left = gap;
  for (let plane = 0; plane < planes; plane++) {
    const wide = room * weights[plane] / total;
    lanes.push({ plane, left, width: wide, folded: crowded && !unfolded.has(plane) });
    left += wide + gap;
  }
  const low = height * (tiers > 2 ? 0.64 : 0.57), high = unit * 3.9;
  const rows = [height - unit * 2.6, low];
  for (let tier = 2; tier <= tiers; tier++) rows.push(low + (high - low) * (tier - 1) / (tiers - 1));
  const at = new Map();
  const totalPlaces = planes * (places + 1) - 1;
  for (const node of scene.nodes) {
    const lane = lanes[node.plane];
    const x = node.tier === 0
      ? gap + (width - 2 * gap) * node.x / totalPlaces
      : lane.left + lane.width * (node.x - node.plane * (places + 1)) / places;
    const low = node.tier ? (node.tier - node.y) * (rows[node.tier - 1] - rows[node.tier]) : 0;
    at.set(node.name, { x, y: rows[node.tier] + low });
  }
  const floor = Math.max(...scene.nodes.filter((node) => node.tier).map((node) => at.get(node.name).y));
  return { lanes, rows, floor, at, width, height, unit, crowded, sizes: sizes(most, lanes, width, unit) };
}

// By tier: the nodes of the plane that has most of them.
function widest(scene) {
  const counts = [];
  for (const { tier, plane } of scene.nodes) {
    const row = counts[tier] ??= [];
    row[plane] = (row[plane] ?? 0) + 1;
  }
  return counts.map((row) => Math.max(...row.filter(Boolean)));
}

// Half the width and height of a node of each tier, so that neighbours do not touch.
function sizes(counts, lanes, width, unit) {
  const most = (room, count) => Math.max(3, Math.min(unit * 1.55, room / count / 2 - 2));
  return (node) => {
    const count = counts[node.tier], lane = lanes[node.plane];
    if (node.tier === 0) return { w: most(width, count), h: unit * 0.85 };
    if (node.tier > 1 && lane.folded) return { w: Math.max(1.5, lane.width / count / 2 - 0.5), h: unit * 0.75 };
    return { w: most(lane.width, count), h: unit * 0.75 };
  };
}

// What is under a point: {node}, {lane} for a folded plane's strip, {cable}, or null.
export function hit(scene, place, x, y) {
  for (const node of scene.nodes) {
    const { x: cx, y: cy } = place.at.get(node.name);
    const { w, h } = place.sizes(node);
    if (Math.abs(x - cx) <= w + 2 && Math.abs(y - cy) <= h + 2) return { node };
  }
  let nearest = null, least = 7;
  for (const cable of scene.cables) {
    const away = distance(place.at.get(cable.a), place.at.get(cable.b), x, y);
    if (away < least) [nearest, least] = [cable, away];
  }
  if (nearest) return { cable: nearest };
  const lane = place.lanes.find((one) => x >= one.left && x <= one.left + one.width && y < place.rows.at(-1) - place.unit);
  return lane ? { lane } : null;
}

function distance(a, b, x, y) {
  const dx = b.x - a.x, dy = b.y - a.y;
  const along = Math.max(0, Math.min(1, ((x - a.x) * dx + (y - a.y) * dy) / (dx * dx + dy * dy)));
  return Math.hypot(a.x + along * dx - x, a.y + along * dy - y);
}
