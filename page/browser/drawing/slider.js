// The time slider: phases as bands, faults as bars from their beginning to their end, events as ticks, the present.

import { clock } from "../words.js";
import { faultKey } from "../run/fold.js";

export function spansOfFaults(record) {
  const open = new Map(), spans = [];
  for (const line of record.events) {
    if (line.kind !== "fault") continue;
    const key = faultKey(line);
    if (line.state === "begin") {
      if (!open.has(key)) spans.push(open.set(key, { line, start: line.t_ns - record.start, stop: null }).get(key));
    } else if (open.has(key)) {
      open.get(key).stop = line.t_ns - record.start;
      open.delete(key);
    }
  }
  return spans;
}

export class Slider {
  constructor(canvas, player, lanes) {
    this.canvas = canvas;
    this.player = player;
    this.lanes = lanes;
    this.drawn = "";
    this.cursor = document.createElement("i");
    this.cursor.className = "cursor";
    canvas.after(this.cursor);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "slider");
    canvas.setAttribute("aria-label", "time");
    let held = false;
    const seek = (event) => player.go((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * player.length);
    canvas.addEventListener("pointerdown", (event) => {
      held = true;
      canvas.setPointerCapture(event.pointerId);
      player.playing = false;
      seek(event);
    });
    canvas.addEventListener("pointermove", (event) => held && seek(event));
    canvas.addEventListener("pointerup", () => held = false);
  }

  // The present, and all else when something has come, or the size or the colours have changed.
  draw({ width, height, version }, unit, colours) {
    const { length, t } = this.player;
    this.cursor.style.transform = `translateX(${Math.round(t / length * width - 2)}px)`;
    const sign = [version, unit, colours.paper, length, ...this.lanes.map((lane) => lane.record.version)].join();
    if (sign === this.drawn) return;
    this.drawn = sign;
    const ctx = this.canvas.getContext("2d");
    ctx.clearRect(0, 0, width, height);
    this.lanes.forEach(({ record }, index) => {
      const top = height * index / this.lanes.length, tall = height / this.lanes.length;
      phases(ctx, record, length, width, top, tall, unit, colours);
      for (const { start, stop } of spansOfFaults(record)) {
        const x = start / length * width, w = Math.max(2, ((stop ?? record.length) - start) / length * width);
        ctx.fillStyle = colours.broken;
        const low = this.lanes.length > 1 ? 0.8 : 0.62; // in a race there is less room beneath a phase's name
        ctx.fillRect(x, top + tall * low, w, tall * (0.92 - low));
        ctx.fillRect(x, top + tall * (low - 0.1), 2, tall * (1.02 - low));
      }
    });
  }

  // The present in words, for readers of the screen.
  tell() {
    const { length, t } = this.player;
    this.canvas.setAttribute("aria-valuetext", clock(t, length));
  }
}

function phases(ctx, record, length, width, top, tall, unit, colours) {
  ctx.font = `${unit * 0.8}px system-ui, "DejaVu Sans", sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  record.phases.forEach((phase, index) => {
    const x = (phase.start - record.start) / length * width;
    const w = ((phase.stop ?? record.end) - phase.start) / length * width;
    ctx.fillStyle = index % 2 ? colours.sheet : colours.paper;
    ctx.fillRect(x, top, w, tall);
    ctx.strokeStyle = colours.line;
    ctx.strokeRect(x, top, w, tall);
    ctx.fillStyle = colours.soft;
    if (w > unit * 3) ctx.fillText(phase.name, x + 4, top + 2, w - 6);
  });
}
