// The buttons beneath the slider: play, steps, speed, and what the run's own clock does.

import { element } from "./element.js";
import { SPEEDS } from "../run/player.js";
import { clock, event } from "../words.js";

export class Toolbar {
  constructor(parent, player) {
    const button = (text, title, act) => element("button", { title, onclick: act }, text);
    this.player = player;
    this.play = button("▶", "play or pause (Space)", () => player.toggle());
    this.live = button("● live", "follow the run (l)", () => player.follow());
    this.clock = element("span", { id: "clock" });
    this.speed = element("span", {});
    this.event = element("span", { id: "event" });
    this.extra = element("span", { className: "row" });
    parent.append(
      button("|◀", "to the beginning (Home)", () => player.go(0)), button("◀ event", "previous event (p)", () => player.step(false)), this.play,
      button("event ▶", "next event (n)", () => player.step(true)), button("−", "slower (−)", () => player.faster(-1)), this.speed,
      button("+", "faster (+)", () => player.faster(1)), this.live, this.clock, this.extra, this.event);
  }

  draw(state) {
    const { player } = this;
    set(this.play, player.playing || player.following ? "❚❚" : "▶");
    set(this.speed, `${SPEEDS[player.speed]}×`);
    set(this.clock, `${clock(player.t, player.length)} of ${clock(player.length, player.length)}`);
    set(this.event, state.last ? event(state.last) : "");
    this.live.hidden = !player.live;
    this.live.setAttribute("aria-pressed", String(player.following));
  }
}

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
