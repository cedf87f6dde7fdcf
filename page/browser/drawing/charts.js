// Goodput, load by plane, and step times with the loss of programs that train, over the whole run, under one slider. Runs of a race share each chart.

import { rate, span } from "../words.js";

const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3], [1, 2], [12, 4], [4, 2, 1, 2], [3, 6]];
const BINS = 240;

// Totals of a run's hosts as curves: acknowledged bytes, and bytes sent on each plane.
export function curves(record) {
  const hosts = new Map();
  for (const line of record.lines) {
    if (line.kind !== "sample" || !line.qps) continue;
    let host = hosts.get(line.node);
    if (!host) {
      hosts.set(line.node, host = { times: [], acked: [], planes: [], last: new Map() });
      if (record.phases.length && line.t_ns > record.start) { // all totals are 0 when the first phase begins
        host.times.push(record.start);
        host.acked.push(0);
        for (const port of line.ports) host.planes[port.plane] = [0];
      }
    }
    for (const qp of line.qps) host.last.set(qp.qp, qp.acked_bytes ?? 0);
    let acked = 0;
    for (const bytes of host.last.values()) acked += bytes;
    host.times.push(line.t_ns);
    host.acked.push(acked);
    for (const port of line.ports) (host.planes[port.plane] ??= []).push(port.tx_bytes ?? 0);
  }
  return hosts;
}

// The rates of a total in bins, bit/s: between samples a total grows evenly.
export function binned(hosts, pick, start, length, bins = BINS) {
  const rates = new Array(bins).fill(0);
  const bin = length / bins;
  for (const host of hosts.values()) {
    const totals = pick(host);
    if (!totals || totals.length < 2) continue;
    let place = 0, before = null;
    for (let edge = 0; edge <= bins; edge++) {
      const t = start + edge * bin;
      while (place < host.times.length - 2 && host.times[place + 1] < t) place++;
      const t0 = host.times[place], t1 = host.times[place + 1];
      const share = Math.max(0, Math.min(1, (t - t0) / (t1 - t0)));
      const now = totals[place] + (totals[place + 1] - totals[place]) * share;
      if (before !== null) rates[edge - 1] += Math.max(0, now - before) * 8e9 / bin;
      before = now;
    }
  }
  return rates;
}

export class Charts {
  constructor(canvas, lanes) {
    this.canvas = canvas;
    this.lanes = lanes;
    this.drawn = "";
    this.cursors = [0, 1, 2].map(() => document.createElement("i"));
    for (const cursor of this.cursors) cursor.className = "cursor";
    canvas.after(...this.cursors);
  }

  // The present, in every chart.
  cursor(share) {
    this.boxes?.forEach((box, index) => {
      this.cursors[index].style.transform = `translateX(${Math.round(box.x + box.w * Math.max(0, Math.min(1, share)))}px)`;
    });
  }

  // The time under a point, as a share of the run; null outside of the charts.
  shareAt(x) {
    const box = this.boxes?.find((one) => x >= one.x && x <= one.x + one.w);
    return box ? (x - box.x) / box.w : null;
  }

  // Draws again when something has come, or the size or the colours have changed.
  draw({ width, height, version }, unit, length, colours, dark) {
    const sign = [version, unit, length > 0 && this.lanes.map((lane) => lane.record.version), dark].join();
    if (sign === this.drawn || (this.busyUntil ?? 0) > performance.now()) return;
    this.drawn = sign;
    const begun = performance.now();
    const ctx = this.canvas.getContext("2d");
    ctx.clearRect(0, 0, width, height);
    const gap = unit * 0.7, each = (width - 4 * gap) / 3;
    const series = this.lanes.map((lane) => this.series(lane, length));
    const boxes = [0, 1, 2].map((index) => ({ x: gap + index * (each + gap), y: unit * 1.5, w: each, h: height - unit * 2 }));
    line(ctx, boxes[0], unit, colours, "goodput", series.map((one) => one.goodput), rate, this.runs(), 4.5, 3.6);
    line(ctx, boxes[1], unit, colours, "load by plane", series.flatMap((one) => one.planes), rate, this.names(series));
    const losses = series.map((one) => one.losses), trains = losses.some((jobs) => jobs.length);
    const title = ["training steps", ...this.runs().map((name, run) => `${run ? "□" : "■"} ${name}`), ...(trains ? ["╌ loss"] : [])].join("  ");
    dots(ctx, boxes[2], unit, colours, title, series.map((one) => one.steps), length, losses);
    this.boxes = boxes;
    boxes.forEach((box, index) => Object.assign(this.cursors[index].style, { top: `${box.y}px`, height: `${box.h}px` }));
    this.busyUntil = performance.now() + 8 * (performance.now() - begun); // a live run's charts take at most a ninth of the time
  }

  // What the lines of a race are called.
  runs() {
    return this.lanes.length > 1 ? this.lanes.map((lane, run) => lane.scene.options.transport ?? `run ${run + 1}`) : [];
  }

  // What the lines of a chart by plane are called, where there is room to say so.
  names(series) {
    return this.lanes.length === 1 && series[0].planes.length <= 4 ? series[0].planes.map((_, plane) => String(plane)) : [];
  }

  series({ record, scene }, length) {
    const hosts = curves(record);
    const start = record.start;
    const planes = Array.from({ length: scene.plan.planes }, (_, plane) => binned(hosts, (host) => host.planes[plane], start, length));
    const steps = record.lines.filter((one) => one.kind === "step" && one.rank === 0).map((one) => ({ t: one.t_ns - start, ns: one.total_ns }));
    const losses = new Map(); // by job
    for (const one of record.lines) {
      if (one.kind !== "step" || one.loss === undefined) continue;
      if (!losses.has(one.workload)) losses.set(one.workload, []);
      losses.get(one.workload).push({ t: one.t_ns - start, loss: one.loss });
    }
    return { goodput: binned(hosts, (host) => host.acked, start, length), planes, steps, losses: [...losses.values()] };
  }
}

function frame(ctx, box, unit, colours, title, top, names = 0) {
  ctx.strokeStyle = colours.line;
  ctx.lineWidth = 1;
  ctx.strokeRect(box.x, box.y, box.w, box.h);
  ctx.font = `${unit * 0.85}px system-ui, "DejaVu Sans", sans-serif`;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  ctx.fillStyle = colours.ink;
  ctx.fillText(title, box.x, box.y - unit * 0.35);
  ctx.textAlign = "right";
  ctx.fillStyle = colours.soft;
  const room = box.w - ctx.measureText(top).width - unit;
  ctx.fillText(names > room ? top.replace("up to", "≤") : top, box.x + box.w, box.y - unit * 0.35);
}

function line(ctx, box, unit, colours, title, all, words, names = [], first = 6.8, each = 1.9) {
  const top = Math.max(1, ...all.map((values) => Math.max(...values)));
  frame(ctx, box, unit, colours, title, `up to ${words(top)}`, names.length && unit * (first + each * names.length));
  const inks = [colours.busy, colours.broken, colours.good, colours.gone, colours.warn, colours.ink, colours.soft, colours.idle];
  all.forEach((values, index) => {
    ctx.strokeStyle = inks[index % inks.length];
    ctx.setLineDash(DASHES[index % DASHES.length]);
    ctx.lineWidth = Math.max(1.3, unit / 11);
    ctx.beginPath();
    values.forEach((value, place) => {
      const x = box.x + box.w * (place + 0.5) / values.length, y = box.y + box.h * (1 - value / top / 1.05);
      ctx[place ? "lineTo" : "moveTo"](x, y);
    });
    ctx.stroke();
    if (names[index]) {
      const x = box.x + unit * (first + index * each);
      ctx.beginPath();
      ctx.moveTo(x, box.y - unit * 0.6);
      ctx.lineTo(x + unit * 0.9, box.y - unit * 0.6);
      ctx.stroke();
      ctx.textAlign = "left";
      ctx.fillStyle = colours.soft;
      ctx.fillText(names[index], x + unit, box.y - unit * 0.35);
    }
  });
  ctx.setLineDash([]);
}

// Per run the steps, and per job of it the loss after each step, as a curve on a separate scale.
function dots(ctx, box, unit, colours, title, all, length, losses) {
  const top = Math.max(1, ...all.map((steps) => Math.max(0, ...steps.map((step) => step.ns))));
  const most = Math.max(0, ...losses.flat(2).map((point) => point.loss));
  const words = [`up to ${span(top)}`, ...(most ? [`loss to ${most.toPrecision(2)}`] : [])].join(", ");
  frame(ctx, box, unit, colours, title, all.some((steps) => steps.length) ? words : "none");
  ctx.setLineDash(DASHES[1]);
  ctx.lineWidth = Math.max(1.3, unit / 11);
  losses.forEach((jobs, run) => {
    ctx.strokeStyle = run ? colours.broken : colours.warn;
    for (const points of jobs) {
      ctx.beginPath();
      points.forEach((point, place) => {
        ctx[place ? "lineTo" : "moveTo"](box.x + box.w * point.t / length, box.y + box.h * (1 - Math.max(0, point.loss) / most / 1.05));
      });
      ctx.stroke();
    }
  });
  ctx.setLineDash([]);
  all.forEach((steps, run) => {
    ctx.fillStyle = ctx.strokeStyle = run ? colours.broken : colours.busy;
    for (const step of steps) {
      const x = box.x + box.w * step.t / length, y = box.y + box.h * (1 - step.ns / top / 1.05), r = unit * 0.17;
      if (run) ctx.strokeRect(x - r, y - r, 2 * r, 2 * r);
      else ctx.fillRect(x - r, y - r, 2 * r, 2 * r);
    }
  });
}
