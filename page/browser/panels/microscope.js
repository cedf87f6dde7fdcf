// One packet, header by header and switch by switch: followed by the lab's process through the switches' tables.

import { element } from "./element.js";
import { ask } from "../run/source.js";
import { answerOf, loggedAnswerOf, received, sampled } from "./receiver.js";
import { span } from "../words.js";

export class MicroscopePanel {
  constructor(page) {
    this.page = page;
    this.seen = null;
    this.said = "";
    this.packet = this.flight = null; // of the packet log, or of those that both ends sampled, when one was chosen
    this.answer = null; // what its receiver did
    page.panels.push((choice, state, lane) => this.panel(choice, lane));
  }

  get sign() {
    return [this.count, this.packet?.packet, this.flight?.t_ns, this.said].join();
  }

  async look(fields) {
    this.said = "looking …";
    this.page.changed();
    try {
      this.seen = await ask("trace", { lane: this.page.choice.lane, ...fields });
      this.count = (this.count ?? 0) + 1;
      this.said = "";
    } catch (error) {
      this.seen = null;
      this.said = error.message;
    }
    this.page.changed();
  }

  // The next packet of the run on the chosen path, or the next one that was trimmed anywhere: of the log, or else of
  // those that both ends sampled.
  next(lane, choice, trimmed) {
    const { record } = lane, now = record.start + this.page.player.t;
    const found = trimmed ? nextTrimmed(record, now) : nextOn(lane, now, choice);
    this.packet = this.flight = this.answer = this.seen = null;
    if (!found) {
      this.said = record.packets.length || record.flights.all.length ? "no such packet is recorded after this moment"
        : "this run recorded no packets: in virtual time, run with --record-packets START..END";
      this.page.changed();
      return;
    }
    this.page.player.playing = false;
    this.page.player.go(found.t_ns - record.start);
    const { line, flight } = found, [source, destination, ev] = line ? [line.src, line.dst, line.ev] : [flight.source, flight.destination, flight.ev];
    choice.choosePair(lane.scene, source, destination);
    choice.ev = lane.scene.knownEv(source, destination, ev);
    this.packet = line ?? null;
    this.flight = flight ?? null;
    if (flight) this.answer = answerOf(flight);
    if (this.page.told.lines) { // an exported file has no process to ask
      if (line) this.answer = loggedAnswerOf(line, record);
      this.said = "";
      return this.page.changed();
    }
    if (line) this.hearAnswer(line);
    const last = lane.scene.pathOfEv(source, destination, ev).switches.at(-1);
    const fields = { source, destination, ev, bytes: (line ? line.payload : flight.sent?.payload) ?? lane.scene.plan.pmtu_bytes };
    this.look(trimmed ? { ...fields, trimmed_at: line ? line.node : last } : fields);
  }

  // What the receiver did with a packet of the log: the lab's process looks it up.
  async hearAnswer(line) {
    try {
      const answer = await ask("answer", { lane: this.page.choice.lane, packet: line.packet });
      if (this.packet === line) this.answer = answer;
    } catch (error) {
      if (this.packet === line) this.said = error.message;
    }
    this.count = (this.count ?? 0) + 1;
    this.page.changed();
  }

  // A packet that is made up for the look.
  imagine(fields) {
    this.packet = this.flight = this.answer = null;
    this.look(fields);
  }

  panel(choice, lane) {
    if (!choice.pair || lane.scene.plan.encapsulation !== "srv6") return [];
    const carried = Boolean(this.page.told.lines);
    const [source, destination] = choice.pair, path = lane.scene.paths(source, destination).find((one) => one.ev === choice.ev);
    const fields = { source, destination, ev: choice.ev, bytes: lane.scene.plan.pmtu_bytes };
    const button = (text, act, key) => element("button", { onclick: act, "data-key": key }, text);
    return [element("h2", {}, "packet microscope"),
      element("div", { className: "row" },
        carried ? null : button("a packet on this path", () => this.imagine(fields), "look"),
        button("the next one on this path", () => this.next(lane, choice, false), "next"),
        button("the next trimmed one", () => this.next(lane, choice, true), "trimmed"),
        path && !carried ? path.switches.map((name) => button(`trimmed at ${name}`, () => this.imagine({ ...fields, trimmed_at: name }), `at ${name}`)) : []),
      carried ? element("p", { className: "why" }, "Tables and headers need ./lab view: an exported file cannot ask the switches.") : null,
      this.said ? element("p", { className: "bad" }, this.said) : null,
      ...(this.packet ? logged(this.packet, lane) : []),
      ...(this.flight ? sampled(this.flight) : []),
      ...(this.packet || this.flight ? received(this.packet ?? this.flight, this.answer, lane) : []),
      ...(this.seen ? [this.packet || this.flight ? null : element("p", { className: "why" }, "A packet made up for this look: no receiver has it. Take the next one of the run to see what its receiver did."), ...journey(this.seen)] : [])];
  }
}

function nextTrimmed(record, now) {
  const line = record.packets.find((one) => one.t_ns > now && !one.op?.includes("ACK") && one.bytes_in > one.bytes && one.bytes_in > 0);
  if (line) return { line, t_ns: line.t_ns };
  const flight = record.flights.all.find((one) => one.received?.trimmed && one.received.t_ns > now);
  return flight ? { flight, t_ns: flight.received.t_ns } : null;
}

function nextOn({ record, scene }, now, choice) {
  const [source, destination] = choice.pair, same = (ev) => scene.knownEv(source, destination, ev) === choice.ev;
  const line = record.packets.find((one) => one.t_ns > now && one.op?.includes("WRITE") && one.node === source && one.dst === destination && same(one.ev));
  if (line) return { line, t_ns: line.t_ns };
  const flight = record.flights.all.find((one) => one.t_ns > now && one.sent && one.source === source && one.destination === destination && same(one.ev));
  return flight ? { flight, t_ns: flight.t_ns } : null;
}

// What the packet log says of the packet from NIC to NIC.
function logged(packet, lane) {
  const lines = lane.record.packets.filter((line) => line.packet === packet.packet);
  const rows = lines.map((line) => element("tr", {}, element("td", {}, line.node), element("td", {}, line.fate),
    element("td", {}, `${line.bytes} B${line.bytes_in > line.bytes ? ` of ${line.bytes_in}: trimmed` : ""}`),
    element("td", {}, line.queued_ns === null || line.fate !== "sent" ? "" : `waited ${span(line.t_ns - line.queued_ns)}${line.depth ? ` behind ${line.depth}` : ""}`)));
  return [element("p", { className: "soft" }, `packet ${packet.packet} of the log: ${packet.op}, PSN ${packet.psn}, to QP ${packet.qpn}`), element("table", {}, rows)];
}

function journey(seen) {
  const parts = [element("h2", {}, "from switch to switch"), element("p", { className: "soft" }, `A WRITE Only of the same size, ${seen.trimmed_at ? `with the queues of ${seen.trimmed_at} full, the other switches idle` : "through the tables as they are now"}:`),
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
  parts.push(element("p", { className: seen.reached ? "" : "bad" }, seen.reached ? `${seen.reached} receives it` : "no host receives it"));
  return parts;
}

// Headers from the outside in; fields that the switch has changed are underlined.
function headers(title, frame, before) {
  const old = new Map((before ?? []).map(([name, fields]) => [name, fields]));
  return element("details", { open: !before }, element("summary", {}, `${title}: ${frame[0][1].bytes} bytes`), frame.map(([name, fields]) => element("div", {},
    element("b", {}, `${name} `), Object.entries(fields).map(([field, value]) => element("span", { className: before && old.get(name)?.[field] !== value ? "changed" : "" }, `${field} ${value}  `)))));
}
