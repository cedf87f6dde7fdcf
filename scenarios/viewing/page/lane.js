// One run (or plan) on the page: its scene, its record, and the canvas that shows it. A race has two.

import { Sized } from "./canvas.js";
import { draw } from "./fabric.js";
import { hit, layout } from "./layout.js";
import { Record } from "./record.js";
import { Scene } from "./scene.js";

export class Lane {
  constructor(parent, told, title) {
    const box = document.createElement("div");
    box.className = "lane";
    parent.append(box);
    this.title = title;
    this.scene = new Scene(told);
    this.record = new Record();
    this.sized = new Sized(box, `${title}: the fabric`);
    this.unfolded = new Set();
    this.sign = "";
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

  draw(t, unit, view) {
    const state = this.at(t);
    draw(this.sized.canvas.getContext("2d"), this.place(unit), this.scene, state, { ...view, record: this.record, t: this.record.start + t });
    return state;
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
