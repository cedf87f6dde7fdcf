// A pair of hosts: its EVs with their states, and the uSID list of the chosen path as it shrinks from hop to hop.

import { element, table } from "./element.js";
import { pathStates } from "../run/look.js";
import { ev } from "../words.js";

const SIGNS = { good: "✓", skip: "↷", assumed_bad: "✕", denied: "⊘" };
const ROWS_MAX = 256;

export function pairPanel(scene, state, view, choose) {
  const [source, destination] = view.pair;
  const states = pathStates(scene, state, source, destination);
  const paths = scene.paths(source, destination).slice(0, ROWS_MAX);
  const chosen = paths.find((path) => path.ev === view.ev) ?? paths[0];
  const rows = paths.map((path) => {
    const line = states.get(path.ev), word = line?.new ?? "good";
    const row = element("tr", { tabIndex: 0, className: path === chosen ? "chosen" : "", onclick: () => choose(path.ev) },
      element("td", {}, element("code", {}, ev(path.ev))), element("td", {}, path.via ?? `p${path.plane}, local`),
      element("td", { className: word === "good" ? "" : "bad" }, `${SIGNS[word] ?? "?"} ${word.replace("_", " ")}`),
      element("td", { className: "soft" }, line?.cause ?? ""));
    row.dataset.key = `ev ${path.ev}`;
    row.addEventListener("keydown", (event) => event.key === "Enter" && choose(path.ev));
    return row;
  });
  return [
    element("h2", {}, `${source} → ${destination}: ${paths.length} paths`),
    scene.plan.encapsulation === "srv6" ? uSids(scene, chosen) : element("p", { className: "soft" }, "no SRv6 here: ECMP chooses among the spines"),
    table(["EV", "via", "state", "cause"], rows),
  ];
}

// Hop by hop: what the packet's outer destination is when it leaves each node.
function uSids(scene, path) {
  const rows = scene.uSidLists(path).map(({ node, usids, address }) => element("tr", {},
    element("td", {}, element("b", {}, node)),
    element("td", {}, element("code", {}, usids.map((usid) => usid.toString(16)).join(" │ ")),
      element("div", {}, element("code", { className: "soft" }, address)))));
  return element("div", { id: "usids" }, element("p", { className: "soft" }, `uSID list on EV ${ev(path.ev)}: each switch removes its own and sends on`), table(["leaves", "with these uSIDs left, in this outer destination"], rows));
}
