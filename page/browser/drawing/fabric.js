// Draws a fabric at an instant on a canvas: cables, nodes, conditions, loads, queues, counts, chosen paths.

import { dropped, load, looks, pathStates, queue } from "../run/look.js";
import { usable } from "../run/fold.js";
import { CONDITIONS, shape, UNSAMPLED } from "./shapes.js";

export function draw(ctx, place, scene, state, view) {
  const { colours, verbs } = view;
  const look = looks(scene, state, verbs);
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, place.width, place.height);
  ctx.lineCap = "butt";
  lanes(ctx, place, scene, view, colours);
  const paths = chosenPaths(scene, state, view);
  cables(ctx, place, scene, state, look, view);
  for (const path of paths) trail(ctx, place, path, colours, paths.length > 64);
  for (const [name, { kind }] of look.cables) { // above the paths, which would hide them
    const { a, b } = scene.byCable.get(name);
    sign(ctx, place, place.at.get(a), place.at.get(b), CONDITIONS[kind], colours);
  }
  nodes(ctx, place, scene, state, look, view);
  folded(ctx, place, scene, look, view);
  counts(ctx, place, look, colours);
}

function font(ctx, size, weight = "") {
  ctx.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
}

function lanes(ctx, place, scene, view, colours) {
  const { unit } = place;
  font(ctx, unit * 0.95, "600");
  for (const lane of place.lanes) {
    ctx.fillStyle = colours.sheet;
    ctx.fillRect(lane.left - unit * 0.35, unit * 0.35, lane.width + unit * 0.7, place.floor + unit * 1.3);
    ctx.fillStyle = colours.soft;
    const sign = place.crowded ? (lane.folded ? " ▸" : " ▾") : "";
    ctx.fillText(`plane ${lane.plane}${sign}`, lane.left + lane.width / 2, unit * 1.15);
  }
}

// A cable's colour, width and dashes: load by width and colour, a condition by dashes, colour and a sign. In a run, a
// cable whose load is not sampled is dotted.
function cables(ctx, place, scene, state, look, view) {
  const { colours } = view;
  const thin = scene.cables.length > 300;
  for (const cable of scene.cables) {
    const found = look.cables.get(cable.name);
    if (place.lanes[cable.plane].folded && !cable.edge && !found && view.chosen?.cable !== cable) continue;
    const a = place.at.get(cable.a), b = place.at.get(cable.b);
    const carried = load(scene, state, cable);
    ctx.globalAlpha = found ? 1 : carried === null ? 0.55 : 0.35 + 0.65 * Math.min(1, carried);
    ctx.strokeStyle = found ? colours[CONDITIONS[found.kind].colour] : carried ? colours.busy : colours.idle;
    ctx.lineWidth = (found ? 2.2 : carried === null ? 0.9 : 0.8 + 2.6 * Math.min(1, carried)) * place.unit / 15 * (thin && !found ? 0.7 : 1);
    if (view.chosen?.cable === cable) {
      ctx.strokeStyle = colours.pick;
      ctx.globalAlpha = 1;
      ctx.lineWidth += 2;
    }
    ctx.setLineDash(found ? CONDITIONS[found.kind].dash : carried === null && state.t ? UNSAMPLED : []);
    ctx.beginPath();
    ctx.moveTo(a.x, a.y);
    ctx.lineTo(b.x, b.y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
    signs(ctx, place, scene, state, cable, a, b, colours);
  }
}

function sign(ctx, place, a, b, condition, colours) {
  const x = a.x + (b.x - a.x) * 0.42, y = a.y + (b.y - a.y) * 0.42, r = place.unit * 0.62;
  ctx.fillStyle = colours.paper;
  ctx.beginPath();
  ctx.arc(x, y, r, 0, 7);
  ctx.fill();
  ctx.strokeStyle = ctx.fillStyle = colours[condition.colour];
  ctx.lineWidth = 1.5;
  ctx.stroke();
  font(ctx, r * 1.35, "700");
  ctx.fillText(condition.sign, x, y + 0.5);
}

// Queues as bars at the ends of a cable, drops as crosses where packets died.
function signs(ctx, place, scene, state, cable, a, b, colours) {
  const filled = queue(scene, state, cable);
  if (filled !== null && filled > 0.02) {
    const h = Math.min(1, filled) * place.unit * 1.3;
    ctx.fillStyle = filled >= 1 ? colours.broken : colours.warn;
    ctx.fillRect(b.x + (a.x - b.x) * 0.16 - 2, b.y + (a.y - b.y) * 0.16 - h / 2, 4, h);
  }
  const lost = dropped(state, cable);
  if (lost?.count) {
    const share = lost.toB ? 0.22 : 0.78;
    shape(ctx, "drop", a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share, place.unit * 0.32, colours);
  }
}

function nodes(ctx, place, scene, state, look, view) {
  const { colours } = view;
  for (const node of scene.nodes) {
    if (node.tier > 1 && place.lanes[node.plane].folded) continue;
    const { x, y } = place.at.get(node.name), { w, h } = place.sizes(node);
    const found = look.nodes.get(node.name);
    const gone = look.left.get(node.name);
    const marked = view.chosen?.node === node || view.pair?.includes(node.name);
    ctx.fillStyle = colours.paper;
    ctx.strokeStyle = marked ? colours.pick : found ? colours[CONDITIONS[found.kind].colour] : gone ? colours.broken : colours.ink;
    ctx.lineWidth = marked ? 3 : found ? 2.5 : 1.2;
    ctx.setLineDash(found ? CONDITIONS[found.kind].dash : []);
    ctx.beginPath();
    ctx.roundRect(x - w, y - h, 2 * w, 2 * h, node.tier ? 3 : h);
    ctx.fill();
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = found ? colours[CONDITIONS[found.kind].colour] : colours.ink;
    label(ctx, place, node, x, y, w, found);
    if (gone && node.tier > 1) {
      font(ctx, place.unit * 0.75, "600");
      ctx.fillStyle = gone.bad ? colours.broken : colours.gone;
      ctx.fillText(gone.bad ? `✕${gone.bad} left` : `⊘${gone.denied}`, x, y - h - place.unit * 0.55);
    }
  }
}

function label(ctx, place, node, x, y, w, found) {
  const short = node.tier ? node.name.replace(/^p\d+/, "") : node.name;
  const size = Math.min(place.unit * 0.9, w * 2 / (short.length * 0.62));
  if (size < 6) return;
  font(ctx, size, "600");
  ctx.fillText(found ? `${short} ${CONDITIONS[found.kind].sign}` : short, x, y + 0.5);
}

// A folded plane: one cell a switch above the leaves, marked where a path was left or a switch broken, and their number.
function folded(ctx, place, scene, look, view) {
  const { colours } = view;
  for (const lane of place.lanes) {
    if (!lane.folded) continue;
    const h = place.unit * 0.75;
    let bad = 0, all = 0;
    for (const node of scene.nodes) {
      if (node.tier < 2 || node.plane !== lane.plane) continue;
      all += 1;
      const { x, y } = place.at.get(node.name), { w } = place.sizes(node);
      const gone = look.left.get(node.name), found = look.nodes.get(node.name);
      bad += Boolean(gone || found);
      ctx.fillStyle = found ? colours[CONDITIONS[found.kind].colour] : gone ? (gone.bad ? colours.broken : colours.gone) : colours.idle;
      const tall = gone || found ? h * 1.4 : h;
      ctx.fillRect(x - w, y - tall, Math.max(1, 2 * w), 2 * tall);
    }
    font(ctx, place.unit * 0.8);
    ctx.fillStyle = bad ? colours.broken : colours.soft;
    ctx.fillText(`${all} ${place.rows.length > 3 ? "upper switches" : "spines"}${bad ? `, ✕${bad}` : ""}`, lane.left + lane.width / 2, place.rows.at(-1) - place.unit * 1.5);
    bundles(ctx, place, scene, look, lane, colours);
  }
}

// One thick line for all cables of a leaf into a folded strip.
function bundles(ctx, place, scene, look, lane, colours) {
  const to = { x: lane.left + lane.width / 2, y: place.rows[2] + place.unit * 0.8 };
  const leaves = scene.nodes.filter((node) => node.tier === 1 && node.plane === lane.plane);
  for (const [leaf, { name }] of leaves.entries()) {
    const from = place.at.get(name);
    ctx.strokeStyle = colours.idle;
    ctx.globalAlpha = 0.6;
    ctx.lineWidth = place.unit * 0.16;
    ctx.beginPath();
    ctx.moveTo(from.x, from.y - place.unit * 0.75);
    ctx.lineTo(to.x + (leaf - (leaves.length - 1) / 2) * 3, to.y);
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
}

// What hosts counted between their last two samples, as shapes with numbers beneath each host.
function counts(ctx, place, look, colours) {
  const size = place.unit * 0.3;
  for (const [host, row] of look.counts) {
    const spot = place.at.get(host);
    if (!spot) continue;
    const kinds = Object.keys(row).filter((kind) => row[kind]).slice(0, 3);
    kinds.forEach((kind, index) => {
      const x = spot.x + (index - (kinds.length - 1) / 2) * place.unit * 1.75 - place.unit * 0.3;
      const y = spot.y + place.unit * 1.55;
      shape(ctx, kind, x, y, size, colours);
      font(ctx, place.unit * 0.72, "600");
      ctx.textAlign = "left";
      ctx.fillText(String(row[kind]), x + place.unit * 0.45, y + 0.5);
    });
  }
}

// The paths of the chosen pair: all of them thin, the chosen one thick.
function chosenPaths(scene, state, view) {
  if (!view.pair) return [];
  const states = pathStates(scene, state, ...view.pair);
  return scene.paths(...view.pair).map((path) => ({ ...path, chosen: path.ev === view.ev, state: states.get(path.ev)?.new ?? "good" }))
    .sort((one, other) => one.chosen - other.chosen);
}

function trail(ctx, place, path, colours, many) {
  const good = usable(path.state);
  ctx.strokeStyle = path.chosen ? colours.pick : colours[good ? "good" : path.state === "denied" ? "gone" : "broken"];
  ctx.lineWidth = path.chosen ? place.unit * 0.32 : place.unit * 0.09;
  ctx.globalAlpha = path.chosen ? 0.9 : many && good ? 0.22 : 0.7;
  ctx.setLineDash(good ? [] : [6, 5]);
  ctx.beginPath();
  for (const [index, name] of path.nodes.entries()) {
    const { x, y } = place.at.get(name);
    ctx[index ? "lineTo" : "moveTo"](x, y);
  }
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}
