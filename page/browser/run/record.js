// All lines of a run by time, with the state at any instant: folded from the nearest checkpoint.

import { Flights } from "./flights.js";
import { apply, begin, copy, isEvent } from "./fold.js";
import { upTo } from "./search.js";

const CHECKPOINT_LINES = 1500;

export class Record {
  constructor() {
    this.clear();
  }

  clear() {
    this.lines = [];
    this.events = []; // those that people step to
    this.packets = []; // lines of the packet log
    this.longestNs = 0; // of their ways from port to port
    this.flights = new Flights(); // packets that both ends sampled
    this.memories = []; // that peers write to
    this.phases = [];
    this.options = {};
    this.over = false; // nothing more will come
    this.version = 0;
    this.checkpoints = [begin()]; // the state before line CHECKPOINT_LINES * index
    this.now = { state: begin(), count: 0 };
    this.start = 0;
  }

  get end() {
    return this.lines.length ? this.lines.at(-1).t_ns : 0;
  }

  // The length of the run: as planned while it goes on, as journalled afterwards.
  get length() {
    return Math.max(this.end - this.start, 1);
  }

  add(lines) {
    let first = Infinity;
    for (const line of lines) {
      first = Math.min(first, place(this.lines, line));
      if (isEvent(line)) place(this.events, line);
      if (line.kind === "packet") this.addPacket(line);
      else if (line.kind === "sampled") this.flights.add(line);
      else if (line.kind === "memory") this.memories.push(line);
      if (line.kind === "phase") this.addPhase(line);
      if (line.kind === "options") Object.assign(this.options, line);
    }
    // What was folded from a later line on is folded again: files of several writers are merged as they come.
    this.checkpoints.length = Math.min(this.checkpoints.length, Math.floor(first / CHECKPOINT_LINES) + 1);
    if (first < this.now.count) {
      const last = this.checkpoints.length - 1;
      this.now = { state: copy(this.checkpoints[last]), count: last * CHECKPOINT_LINES };
    }
    if (!this.phases.length && this.lines.length) this.start = this.lines[0].t_ns;
    this.version += lines.length;
  }

  addPacket(line) {
    place(this.packets, line);
    this.longestNs = Math.max(this.longestNs, (line.arrives_ns ?? 0) - line.t_ns);
  }

  addPhase(line) {
    if (line.state === "start") this.phases.push({ name: line.name, start: line.t_ns, stop: null });
    else for (const phase of this.phases) if (phase.name === line.name) phase.stop = line.t_ns;
    this.start = Math.min(...this.phases.map((phase) => phase.start));
  }

  // The state when everything up to `t`, and at it, has happened.
  at(t) {
    const count = upTo(this.lines, t);
    if (count < this.now.count || count - this.now.count > CHECKPOINT_LINES) {
      const index = Math.min(Math.floor(count / CHECKPOINT_LINES), this.checkpoints.length - 1);
      if (count < this.now.count || index * CHECKPOINT_LINES > this.now.count) {
        this.now = { state: copy(this.checkpoints[index]), count: index * CHECKPOINT_LINES };
      }
    }
    while (this.now.count < count) {
      apply(this.now.state, this.lines[this.now.count++]);
      if (this.now.count % CHECKPOINT_LINES === 0 && this.checkpoints.length === this.now.count / CHECKPOINT_LINES) {
        this.checkpoints.push(copy(this.now.state));
      }
    }
    return this.now.state;
  }

  get firstFault() {
    return this.events.find((line) => line.kind === "fault" && line.state !== "end") ?? null;
  }

  nextEvent(t) {
    return this.events[upTo(this.events, t)] ?? null;
  }

  previousEvent(t) {
    return this.events[upTo(this.events, t - 1) - 1] ?? null;
  }

  // The registered memory of a host that holds an address; null when none was journalled.
  memoryAt(node, va) {
    return this.memories.find((one) => one.node === node && va >= one.va && va < one.va + one.length) ?? null;
  }

  // Packets of the log of which a line was written between two instants.
  packetsBetween(from, to) {
    return this.packets.slice(upTo(this.packets, from), upTo(this.packets, to));
  }
}

// Puts a line behind all that are not later; nearly always at the end. Returns its place.
function place(lines, line) {
  if (!lines.length || lines.at(-1).t_ns <= line.t_ns) return lines.push(line) - 1;
  const at = upTo(lines, line.t_ns);
  lines.splice(at, 0, line);
  return at;
}
