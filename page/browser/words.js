// Numbers and times in words.

const RATES = [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]];
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

export function rate(bps) {
  const [size, unit] = RATES.find(([least]) => bps >= least) ?? RATES.at(-1);
  return `${digits(bps / size)} ${unit}`;
}

export function span(ns) {
  const [size, unit] = TIMES.find(([least]) => Math.abs(ns) >= least) ?? TIMES.at(-1);
  return `${digits(ns / size)} ${unit}`;
}

// A time on the run's clock, whose unit follows from the run's length.
export function clock(ns, lengthNs) {
  const [size, unit] = TIMES.find(([least]) => lengthNs >= 2 * least) ?? TIMES.at(-1);
  return `${(ns / size).toFixed(2)} ${unit}`;
}

export function ev(number) {
  return "0x" + Number(number).toString(16).padStart(8, "0");
}

// A line of the journal as a sentence.
export function event(line) {
  switch (line.kind) {
    case "phase": return `phase ${line.name} ${line.state === "start" ? "begins" : "ends"}`;
    case "fault": return `${line.verb} ${line.target}${value(line)}${line.state === "begin" ? "" : " undone"}`;
    case "ev": return `${line.node}→${line.peer}: EV ${ev(line.ev)} (${line.via ?? "local"}) ${line.old} → ${line.new}, ${line.cause}`;
    case "qp": return `${line.node}: queue pair ${line.qp} ${line.old} → ${line.new}, ${line.cause}`;
    case "repair": return `${line.node}→${line.peer}: ${line.packets} packets taken for lost had arrived`;
    case "plane": return `${line.node}: plane ${line.plane} ${line.state} (${line.side}${line.peer ? " " + line.peer : ""}), ${line.cause}`;
    case "stall": return `${line.node} stood still for ${span(line.late_ns)}`;
    case "switch": return `${line.node} ${line.state}`;
    case "link": return `${line.a}–${line.b}: ${line.state}, ${line.node}'s prober says`;
    case "command": return `${line.host}: ${line.state === "start" ? line.words : ended(line)}`;
    case "error": return `error: ${line.message}`;
    default: return `${line.node}: ${line.kind}`;
  }
}

function ended(line) {
  return `the program ${line.cause || `ended with status ${line.status}`}`;
}

// The number of a fault, such as its percent of losses.
export function value(line) {
  return line.arguments?.value === undefined ? "" : ` ${line.arguments.value}`;
}

function digits(number) {
  return Math.abs(number) >= 100 ? number.toFixed(0) : Math.abs(number) >= 10 ? number.toFixed(1) : number.toFixed(2);
}
