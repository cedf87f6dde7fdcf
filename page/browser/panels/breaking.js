// Break it: a button for each fault verb that fits what is chosen; each shows the command and the scenario's line.

import { element } from "./element.js";
import { ask } from "../run/source.js";

export class Breaking {
  constructor(page) {
    this.page = page;
    this.state = null; // what the lab's process says it can do
    this.said = "";
    this.wrong = false;
    this.values = new Map();
    this.direction = new Map();
    page.panels.push((choice, state, lane) => this.panel(choice, state, lane));
    if (page.told.mode === "live") this.look();
  }

  get sign() {
    return [JSON.stringify(this.state), this.said, ...this.direction.values()].join();
  }

  // Asks now and then what can be done: another user may have changed it.
  async look() {
    if (this.page.lanes.every((lane) => lane.record.over)) {
      this.state = { ...this.state, breakable: false, why_not: "the run is over", pausable: false, faults: [], scenario: false };
      this.page.changed();
      return; // its server ends with it
    }
    try {
      this.state = await ask("state");
    } catch {
      this.state = { breakable: false, why_not: "the lab's process does not answer", faults: [] };
    }
    this.page.changed();
    setTimeout(() => this.look(), 1000);
  }

  async act(op, fields = {}) {
    try {
      const done = await ask(op, fields);
      this.said = done.done ?? this.said;
      this.wrong = false;
      this.state = await ask("state");
      return done;
    } catch (error) {
      this.said = error.message;
      this.wrong = true;
      return null;
    } finally {
      this.page.changed();
    }
  }

  panel(choice, state, lane) {
    if (this.page.told.mode !== "live" || !this.state) return [];
    const parts = [];
    for (const [title, target, key] of targetsOf(choice, lane.scene, this.direction)) parts.push(...this.buttons(title, target, key, lane));
    parts.push(...this.inForce(), ...this.capture(choice), this.save(lane));
    if (this.said) parts.push(element("p", { className: this.wrong ? "bad" : "", role: "status" }, this.said));
    return parts;
  }

  buttons(title, target, key, lane) {
    const refusals = lane.refusals[key] ?? {};
    const rows = [...this.page.verbs.values()].filter((verb) => verb.name in refusals).map((verb) => {
      const refusal = this.state.breakable ? refusals[verb.name].replaceAll(/\bh\d+\b|\bp\d+[lsc]\d+\b/g, "it") : this.state.why_not;
      return this.button(verb, target, refusal, lane);
    });
    const turn = /[->]/.test(target) ? element("button", { onclick: () => this.turn(lane, target), "data-key": "turn" }, target.includes(">") ? "this direction only" : "both directions") : null;
    const whose = this.page.lanes.length > 1 ? ` in ${lane.title}` : "";
    return [element("h2", {}, `${title}${whose}`), turn && element("div", { className: "row" }, turn), ...rows];
  }

  // Both directions, one, the other, and both again.
  turn(lane, target) {
    const cable = lane.scene.cableOf(target);
    this.direction.set(cable.name, ((this.direction.get(cable.name) ?? 0) + 1) % 3);
    this.page.changed();
  }

  button(verb, target, refusal, lane) {
    const field = `${verb.name} ${target}`;
    const value = () => verb.argument ? Number(this.values.get(field) ?? usual(verb)) : undefined;
    const input = verb.argument && element("input", {
      type: "number", value: this.values.get(field) ?? usual(verb), min: verb.argument.low, max: verb.argument.high, step: "any", "aria-label": `${verb.argument.name} for ${verb.name}`,
      "data-key": `value ${field}`, oninput: (event) => this.values.set(field, event.target.value),
    });
    if (input) input.style.width = "6em";
    const press = () => this.act("fault", { lane: this.page.lanes.indexOf(lane), verb: verb.name, target, ...(verb.argument ? { value: value() } : {}) });
    const button = element("button", { disabled: Boolean(refusal), onclick: press, "data-key": field, "data-verb": verb.name }, verb.name);
    return element("div", {},
      element("div", { className: "row" }, button, input, input && element("span", { className: "soft" }, verb.argument.name), element("span", { className: "soft" }, verb.meaning)),
      refusal ? element("div", { className: "why" }, `cannot be done: ${refusal}`)
        : element("div", { className: "why" }, element("code", {}, command(verb, target, value())), " · ", element("code", {}, line(verb, target, value(), lane, this.page))));
  }

  inForce() {
    const { faults } = this.state, race = this.page.lanes.length > 1;
    if (!faults.length) return [];
    const rows = faults.map(({ lane = 0, ...fault }) => element("div", { className: "row" },
      element("button", { onclick: () => this.act("undo", { lane, ...fault }), "data-key": `undo ${lane} ${fault.verb} ${fault.target} ${fault.value}`, "data-undo": fault.target }, "undo"),
      `${fault.verb} ${fault.target}${fault.value === null ? "" : ` ${fault.value}`}${race ? ` in ${this.page.lanes[lane].title}` : ""}`));
    return [element("h2", {}, "in force"), ...rows, faults.length > 1 ? element("button", { onclick: () => this.act("heal"), "data-key": "heal" }, "undo all") : null,
      element("div", { className: "why" }, element("code", {}, "./lab undo"), " does the same in a lab that is up")];
  }

  // On real links, where packets of a cable can be looked at while they pass.
  capture({ cable }) {
    if (!cable || !this.state.breakable || this.state.pausable) return [];
    return [element("div", { className: "why" }, element("code", {}, `./lab capture ${cable.name} --wireshark`), " shows its packets in Wireshark as they pass")];
  }

  save() {
    const save = async () => {
      const done = await this.act("scenario");
      if (done) this.said = `wrote ${done.file}: fill in its checks, then ${done.command}`;
      this.page.changed();
    };
    return element("div", { className: "row" }, element("button", { onclick: save, "data-key": "save", disabled: !this.state.scenario, title: this.state.scenario ? "" : this.state.why_not }, "save as scenario"));
  }
}

// What is chosen, as targets of faults: title, target, and the key of what can refuse it (page/view.py).
function targetsOf(choice, scene, direction) {
  const kind = (name) => scene.kinds[name] ?? "host";
  if (choice.node?.tier) return [[`break ${choice.node.name}`, choice.node.name, `switch ${kind(choice.node.name)}`]];
  if (choice.node) return [[`break ${choice.node.name}`, choice.node.name, "nic"]];
  if (!choice.cable) return [];
  const { a, b, edge, plane, name } = choice.cable;
  const way = direction.get(name) ?? 0;
  const [from, to] = way === 2 ? [b, a] : [a, b];
  const link = way ? [`break ${from}>${to}`, `${from}>${to}`, `link ${kind(from)} > ${kind(to)}`] : [`break ${name}`, name, `link ${kind(a)} ${kind(b)}`];
  return edge ? [link, [`break port ${a}.p${plane}`, `${a}.p${plane}`, `nic port ${kind(b)}`]] : [link];
}

function usual(verb) {
  return { percent: 10, ms: 50, mbps: 1 }[verb.argument.name] ?? verb.argument.low;
}

// What a person would type for the same.
function command(verb, target, value) {
  return `./lab fault ${verb.name} ${target.includes(">") ? `'${target}'` : target}${value === undefined ? "" : ` ${value}`}`;
}

// What it would be in a scenario's timeline, at the present time of the run.
function line(verb, target, value, lane, page) {
  const { record } = lane, t = page.player.t;
  const phase = [...record.phases].reverse().find((one) => one.start - record.start <= t);
  const at = phase ? (t - (phase.start - record.start)) / 1e9 / (record.options.pace ?? 1) : t / 1e9;
  return `TimedFault(${at.toFixed(1)}, "${verb.name}", "${target}"${value === undefined ? "" : `, value=${value}`}${phase ? `, phase="${phase.name}"` : ""})`;
}
