// The run's own clock, in virtual time: hold it, let it go on, or let it go one sample on.

import { element } from "./element.js";

export class PauseControls {
  constructor(page, breaking) {
    this.breaking = breaking;
    if (!page.told.virtual) return;
    const button = (text, title, op, after) => element("button", { title, onclick: () => breaking.act(op).then(after), "data-op": op }, text);
    const follow = () => page.player.follow();
    this.hold = button("hold the run", "the run itself stands still, in virtual time", "pause");
    this.go = button("let it run", "the run goes on", "resume", follow);
    this.one = button("one step", "the run goes on for one interval of its samples", "step", follow);
    page.toolbar.extra.append(this.hold, this.go, this.one);
    setInterval(() => this.draw(), 200);
  }

  draw() {
    const { pausable, paused } = this.breaking.state ?? {};
    for (const button of [this.hold, this.go, this.one]) button.disabled = !pausable;
    this.hold.hidden = Boolean(paused);
    this.go.hidden = !paused;
  }
}
