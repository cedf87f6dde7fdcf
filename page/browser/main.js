// The page: gets the scene, lets lines in, and draws what the clock shows.

import { aboutCable, aboutNode, aboutRun, legend } from "./panels/about.js";
import { Sized, colours as themeColours, unit as letter } from "./drawing/canvas.js";
import { Breaking } from "./panels/breaking.js";
import { Charts } from "./drawing/charts.js";
import { Choice } from "./panels/choice.js";
import { PauseControls } from "./panels/pausing.js";
import { element, replace } from "./panels/element.js";
import { help } from "./panels/help.js";
import { listen } from "./panels/keys.js";
import { Lane } from "./drawing/lane.js";
import { MicroscopePanel } from "./panels/microscope.js";
import { pairPanel } from "./panels/pair.js";
import { goodput } from "./run/fold.js";
import { load } from "./run/look.js";
import { Player } from "./run/player.js";
import { shape } from "./drawing/shapes.js";
import { Slider } from "./drawing/slider.js";
import { Events, unpacked } from "./run/source.js";
import { Toolbar } from "./panels/toolbar.js";

const PANEL_MS = 200, WORDS_MS = 100; // eyes read no faster
const find = (id) => document.getElementById(id);

class Page {
  constructor(told) {
    this.told = told;
    this.verbs = new Map(told.verbs.map((verb) => [verb.name, verb]));
    this.lanes = told.lanes.map((lane) => new Lane(find("lanes"), lane));
    this.player = new Player(this.lanes.map((lane) => lane.record));
    this.player.following = told.mode === "live";
    this.choice = new Choice();
    this.charts = new Sized(find("charts"), "charts of goodput, load by plane and step times");
    this.slid = new Sized(find("slider"), "time");
    this.chart = new Charts(this.charts.canvas, this.lanes);
    this.slider = new Slider(this.slid.canvas, this.player, this.lanes);
    this.toolbar = new Toolbar(find("transport"), this.player);
    this.panels = []; // further panels: each gives elements for the present choice, or nothing
    this.breaking = new Breaking(this);
    this.microscope = new MicroscopePanel(this);
    this.pausing = new PauseControls(this, this.breaking);
    this.frames = 0;
    this.panelMs = this.wordsMs = 0;
    this.restyle();
    this.measure();
    this.name();
    this.hear();
  }

  name() {
    document.querySelector("footer").hidden = this.told.mode === "plan"; // a plan has no time
    document.title = `${this.told.title} · mrclab`;
    find("title").textContent = this.told.title;
    find("mode").textContent = this.told.words;
    const { scene } = this.lanes[0];
    find("names").replaceChildren(...[...scene.byName.keys()].map((value) => element("option", { value })));
  }

  hear() {
    listen(this);
    for (const lane of this.lanes) {
      lane.sized.canvas.addEventListener("click", (event) => this.click(lane, event));
    }
    find("charts").addEventListener("click", (event) => {
      const share = this.chart.shareAt(event.clientX);
      if (share !== null) this.player.go(share * this.player.length);
    });
    find("pick").addEventListener("change", (event) => this.pick(event.target));
    find("theme").addEventListener("click", () => this.turnTheme());
    find("ask").addEventListener("click", () => help(find("help")));
    addEventListener("resize", () => this.measure());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
  }

  pick(input) {
    const index = this.lanes.findIndex((lane) => this.choice.find(input.value, lane.scene)), found = index >= 0;
    if (found) this.choice.lane = index;
    input.setCustomValidity(found ? "" : "no such node, cable or pair");
    input.reportValidity();
    if (found) input.blur();
    this.changed();
  }

  click(lane, event) {
    const found = lane.hit(event, this.unit);
    if (found?.lane && this.lanes.every((one) => one.placed.crowded)) for (const one of this.lanes) one.fold(found.lane.plane);
    else {
      const index = this.lanes.indexOf(lane);
      if (index !== this.choice.lane) this.choice.clear();
      this.choice.take(found, lane.scene);
      this.choice.lane = index;
    }
    this.changed();
  }

  choose(ev) {
    this.choice.ev = ev;
    this.changed();
  }

  changed() {
    this.panelMs = this.wordsMs = -Infinity;
  }

  // Letters follow the window's height.
  measure() {
    this.unit = letter();
  }

  // In a race: the same in the other run.
  turnLane() {
    const { choice } = this, next = (choice.lane + 1) % this.lanes.length, { ev } = choice;
    if (!choice.target || next === choice.lane || !choice.find(choice.target, this.lanes[next].scene)) return;
    choice.lane = next;
    if (choice.pair) choice.ev = this.lanes[next].scene.pathOfEv(...choice.pair, ev)?.ev ?? choice.ev;
  }

  turnTheme() {
    this.dark = !document.documentElement.classList.contains("dark");
    this.restyle();
  }

  restyle() {
    const dark = this.dark ?? matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.classList.toggle("dark", dark);
    this.colours = themeColours();
    this.changed();
  }

  // What a source says of lane `index`.
  hears(index, what, value) {
    const { record } = this.lanes[index];
    if (what === "lines") {
      record.add(value);
      if (!this.begun && !this.player.following) this.player.t = 0;
      this.begun = true;
    } else if (what === "begin") record.clear();
    else if (what === "end") this.ends(record);
    else if (what === "link") find("link").textContent = value ? "" : "✕ connection lost: trying again";
    this.changed();
  }

  ends(record) {
    record.over = true;
    // A viewer who has moved or plays already stays there.
    if (this.told.mode === "replay" && !this.player.live && this.player.t === 0 && !this.player.playing) this.player.open();
  }

  frame(ms) {
    this.player.tick(Math.min(ms - (this.lastMs ?? ms), 250));
    this.lastMs = ms;
    const { node, cable, pair, ev } = this.choice;
    const sign = [this.choice.target, this.choice.lane, ev, this.colours.paper].join();
    const passing = this.player.playing || this.player.following;
    const view = { colours: this.colours, verbs: this.verbs, chosen: { node, cable }, pair, ev, sign, passing, following: this.player.following && this.player.live, pace: this.player.pace };
    const states = this.lanes.map((lane) => lane.draw(this.player.t, this.unit, view));
    const dark = document.documentElement.classList.contains("dark");
    this.chart.draw(this.charts, this.unit, this.player.length, this.colours, dark);
    this.chart.cursor(this.player.t / this.player.length);
    this.slider.draw(this.slid, this.unit, this.colours);
    if (ms - this.wordsMs > WORDS_MS) {
      this.wordsMs = ms;
      this.toolbar.draw(states[0]);
      this.slider.tell();
    }
    if (ms - this.panelMs > PANEL_MS) {
      this.panelMs = ms;
      this.panel(states);
    }
    this.frames += 1;
    requestAnimationFrame((next) => this.frame(next));
  }

  panel(states) {
    const { choice } = this, lane = this.lanes[choice.lane], state = states[choice.lane];
    const sign = [choice.target, choice.lane, choice.ev, this.player.t, lane.record.version, this.breaking.sign, this.microscope.sign, this.colours.paper].join();
    replace(find("panel"), sign, () => {
      const parts = [];
      if (choice.pair) parts.push(...pairPanel(lane.scene, state, choice, (ev) => this.choose(ev)));
      else if (choice.node) parts.push(...aboutNode(lane.scene, state, choice.node));
      else if (choice.cable) parts.push(...aboutCable(lane.scene, state, choice.cable));
      for (const panel of this.panels) parts.push(...panel(choice, state, lane));
      if (!choice.target) {
        this.lanes.forEach((one, index) => parts.push(...aboutRun(one, states[index])));
        parts.push(...legend(this.colours, shape));
      }
      return parts;
    });
    if (choice.ev !== this.shownEv) find("panel").querySelector("tr.chosen")?.scrollIntoView({ block: "nearest" });
    this.shownEv = choice.ev;
  }

  // The load of a cable as the picture has it, as a share of its rate; null where nothing was measured.
  loadOf(name, index = 0) {
    const { scene } = this.lanes[index];
    return load(scene, this.lanes[index].at(this.player.t), scene.cableOf(name));
  }

  // The picture at the present time in plain values: for a reader at the console, and for tests.
  picture(index = 0) {
    const state = this.lanes[index].at(this.player.t);
    const plain = (map) => Object.fromEntries([...map].sort(([one], [other]) => (one < other ? -1 : 1)));
    const { faults, evs, planes, qps, samples, steps, loss, phase } = state;
    return {
      t_ns: state.t, lines: this.lanes[index].record.lines.length, steps, loss: loss?.loss ?? null, phase,
      goodput_bps: goodput(state), faults: plain(faults), evs: plain(evs), planes: plain(planes), qps: plain(qps),
      samples: plain(new Map([...samples].map(([name, pair]) => [name, pair[1]]))),
    };
  }
}

async function start() {
  const carried = document.getElementById("carried"); // an exported file carries scene and lines itself
  const told = carried ? JSON.parse(carried.textContent) : await (await fetch("scene.json")).json();
  const page = globalThis.lab = new Page(told);
  for (const index of page.lanes.keys()) {
    if (carried) unpacked(told.lines[index]).then((lines) => { page.hears(index, "lines", lines); page.hears(index, "end"); });
    else page.lanes[index].source = new Events(index, (what, value) => page.hears(index, what, value));
  }
  requestAnimationFrame((ms) => page.frame(ms));
}

start();
