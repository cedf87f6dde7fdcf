// One run (or plan) on the page: its scene, its record, and the canvas that shows it. A race has two.

import { Sized } from "./canvas.js";
import { draw } from "./fabric.js";
import { hit, layout } from "./layout.js";
import { drawPackets, shownPackets } from "./packets.js";
import { Record } from "../run/record.js";
import { Scene } from "../run/scene.js";

const LAG_RTTS = 8;
const LOOK_MS = 100; // while time passes, loads and counts are drawn anew so often at most: eyes read no faster

export class Lane {
  constructor(parent, { scene, title, refusals }) {
    const box = document.createElement("div");
    box.className = "lane";
    parent.append(box);
    this.title = title;
    this.refusals = refusals;
    this.scene = new Scene(scene);
    this.record = new Record();
    this.sized = new Sized(box, `${title}: the fabric`, true);
    this.over = new Sized(box); // packets on their way
    this.unfolded = new Set();
    this.sign = this.drawn = this.overDrawn = "";
    this.drawnMs = 0;
  }

  // The state at `t` since the first phase.
  at(t) {
    return this.record.at(this.record.start + t);
  }

  place(unit) {
    const sign = [this.sized.version, this.sized.width, unit, ...this.unfolded].join();
    if (sign !== this.sign) {
      this.sign = sign;
      this.placed = layout(this.scene, this.sized.width, this.sized.height, unit, this.unfolded);
    }
    return this.placed;
  }

  // Draws what has changed since the last call: `view.sign` identifies what people chose, `view.passing` for a clock
  // that goes on.
  draw(t, unit, view) {
    const state = this.at(t), place = this.place(unit), ms = performance.now();
    const chosen = [this.sign, view.sign].join(), sign = [chosen, this.record.version, this.record.now.count].join();
    if (sign !== this.drawn && (!view.passing || chosen !== this.chosen || ms - this.drawnMs >= LOOK_MS)) {
      [this.drawn, this.chosen, this.drawnMs] = [sign, chosen, ms];
      draw(this.sized.ctx, place, this.scene, state, view);
    }
    this.packets({ ...view, record: this.record, t: this.record.start + this.flowing(t, view, ms) }, place);
    return state;
  }

  // The time of packets on their way. A live run's lines come in heaps, and the answer to a packet comes last: packets
  // are shown some round trips late, and move evenly.
  flowing(t, view, ms) {
    const lag = LAG_RTTS * this.scene.plan.base_rtt_ns;
    if (!view.following) this.flow = t;
    else {
      const aim = t - lag, passed = (ms - (this.flowMs ?? ms)) * 1e6 * view.pace;
      this.flow = Math.min(t - lag / 2, Math.max(aim - lag, (this.flow ?? aim) + passed));
    }
    this.flowMs = ms;
    return this.flow;
  }

  packets(view, place) {
    const packets = shownPackets(place, this.scene, view);
    const sign = packets.length ? [view.t, this.sign, view.sign].join() : "";
    if (sign === this.overDrawn && this.over.version === this.overVersion) return;
    [this.overDrawn, this.overVersion] = [sign, this.over.version];
    this.over.ctx.clearRect(0, 0, place.width, place.height);
    drawPackets(this.over.ctx, place, packets, view.colours);
  }

  hit(event, unit) {
    const edge = this.sized.canvas.getBoundingClientRect();
    return hit(this.scene, this.place(unit), event.clientX - edge.left, event.clientY - edge.top);
  }

  fold(plane) {
    if (this.unfolded.has(plane)) this.unfolded.delete(plane);
    else this.unfolded.add(plane);
  }

  foldAll() {
    if (this.unfolded.size) this.unfolded.clear();
    else for (let plane = 0; plane < this.scene.plan.planes; plane++) this.unfolded.add(plane);
  }
}
