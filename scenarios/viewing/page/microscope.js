// One packet, header by header and switch by switch: followed by the lab's process through the switches' tables.

import { element } from "./element.js";
import { ask } from "./source.js";
import { span } from "./words.js";

export class MicroscopePanel {
  constructor(page) {
    this.page = page;
    this.seen = null;
    this.said = "";
    this.packet = null; // of the packet log, when one was chosen
    page.panels.push((choice, state, lane) => this.panel(choice, lane));
  }

  get sign() {
    return [this.seen && this.count, this.said].join();
  }

  async look(fields) {
    this.said = "looking …";
    this.page.changed();
    try {
      this.seen = await ask("trace", { lane: 0, ...fields });
      this.count = (this.count ?? 0) + 1;
      this.said = "";
    } catch (error) {
      this.seen = null;
      this.said = error.message;
    }
    this.page.changed();
  }

  // The next packet of the log on the chosen path, or the next one that was trimmed anywhere.
  next(lane, choice, trimmed) {
    const { record } = lane, now = record.start + this.page.player.t;
    const [source, destination] = choice.pair;
    const found = record.packets.find((line) => line.t_ns > now && !line.op?.includes("ACK") && (trimmed
      ? line.bytes_in > line.bytes && line.bytes_in > 0
      : line.node === source && line.dst === destination && line.ev === choice.ev));
    if (!found) {
      this.said = record.packets.length ? "no such packet after this moment" : "no packet log: run with --record-packets START..END";
      this.page.changed();
      return;
    }
    this.packet = found;
    this.page.player.playing = false;
    this.page.player.go(found.t_ns - record.start);
    choice.choosePair(lane.scene, found.src, found.dst);
    choice.ev = found.ev;
    const fields = { source: found.src, destination: found.dst, ev: found.ev, bytes: 4096 };
    this.look(trimmed ? { ...fields, trimmed_at: found.node } : fields);
  }

  panel(choice, lane) {
    if (!choice.pair || lane.scene.plan.encapsulation !== "srv6") return [];
    if (this.page.told.lines) return [element("p", { className: "why" }, "The microscope needs ./lab view: an exported file cannot ask the switches.")];
    const [source, destination] = choice.pair, path = lane.scene.paths(source, destination).find((one) => one.ev === choice.ev);
    const fields = { source, destination, ev: choice.ev, bytes: 4096 };
    const button = (text, act, key) => element("button", { onclick: act, "data-key": key }, text);
    return [element("h2", {}, "packet microscope"),
      element("div", { className: "row" },
        button("a packet on this path", () => { this.packet = null; this.look(fields); }, "look"),
        button("the next one on this path", () => this.next(lane, choice, false), "next"),
        button("the next trimmed one", () => this.next(lane, choice, true), "trimmed"),
        path ? path.switches.map((name) => button(`trimmed at ${name}`, () => { this.packet = null; this.look({ ...fields, trimmed_at: name }); }, `at ${name}`)) : []),
      this.said ? element("p", { className: "bad" }, this.said) : null,
      ...(this.packet ? logged(this.packet, lane) : []),
      ...(this.seen ? journey(this.seen) : [])];
  }
}

// What the packet log says of the packet from NIC to NIC.
function logged(packet, lane) {
  const lines = lane.record.packets.filter((line) => line.packet === packet.packet);
  const rows = lines.map((line) => element("tr", {}, element("td", {}, line.node), element("td", {}, line.fate),
    element("td", {}, `${line.bytes} B${line.bytes_in > line.bytes ? ` of ${line.bytes_in}: trimmed` : ""}`),
    element("td", {}, line.queued_ns === null || line.fate !== "sent" ? "" : `waited ${span(line.t_ns - line.queued_ns)} behind ${line.depth}`)));
  return [element("p", { className: "soft" }, `packet ${packet.packet} of the log: ${packet.op}, PSN ${packet.psn}, to QP ${packet.qpn}; below, a WRITE Only of the same size stands in for it`), element("table", {}, rows)];
}

function journey(seen) {
  const parts = [element("p", { className: "soft" }, seen.trimmed_at ? `with the queues of ${seen.trimmed_at} full, the other switches idle` : "through the tables as they are now"),
    headers(`${seen.source} sends`, seen.sent, null)];
  let before = seen.sent;
  for (const line of seen.start) parts.push(element("p", { className: "bad" }, line));
  for (const hop of seen.hops) {
    parts.push(element("h2", {}, `${hop.switch}: in by ${hop.port_in}${hop.port_out === null ? "" : `, out by ${hop.port_out}`}`));
    parts.push(element("table", {}, hop.tables.map(([table, said]) => element("tr", {}, element("td", {}, table), element("td", {}, element("code", {}, said))))));
    for (const line of [...hop.conditions, hop.reason].filter(Boolean)) parts.push(element("p", { className: "bad" }, line));
    if (hop.frame.length) parts.push(headers("leaves", hop.frame, before));
    if (hop.frame.length) before = hop.frame;
    if (hop.text) parts.push(element("details", {}, element("summary", {}, "every step"), element("pre", {}, hop.text)));
  }
  parts.push(element("p", { className: seen.reached ? "" : "bad" }, seen.reached ? `${seen.reached} receives it` : "nobody receives it"));
  return parts;
}

// Headers from the outside in; fields that the switch has changed are underlined.
function headers(title, frame, before) {
  const old = new Map((before ?? []).map(([name, fields]) => [name, fields]));
  return element("details", { open: !before }, element("summary", {}, `${title}: ${frame[0][1].bytes} bytes`), frame.map(([name, fields]) => element("div", {},
    element("b", {}, `${name} `), Object.entries(fields).map(([field, value]) => element("span", { className: before && old.get(name)?.[field] !== value ? "changed" : "" }, `${field} ${value}  `)))));
}
