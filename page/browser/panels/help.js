// The page of help, and the keys.

import { element } from "./element.js";

export const KEYS = [
  ["Space", "play or pause"], ["n / p", "next or previous event"], ["← / →", "a hundredth back or on"], ["+ / −", "faster or slower"],
  ["Home / End", "to the beginning or the end"], ["l", "follow a live run"], ["/", "choose by name: a node, p0l0-p0s0, h3.p2, or a pair: h0 h5"],
  ["[ / ]", "the pair's previous or next path"], ["Tab, Enter", "walk through buttons and rows, and press them"], ["b", "go to the panel's first button"], ["u", "fold or unfold the crowded planes"], ["r", "in a race: the same thing in the other run"],
  ["d", "dark or light"], ["Esc", "clear the choice"], ["?", "this help"],
];

export function help(dialog) {
  dialog.replaceChildren(
    element("h2", {}, "What this page shows"),
    element("p", {}, "A fabric of leaf and spine switches in planes; every host has a port in each plane, and sprays packets over all paths. "
      + "Everything comes from the run's journal, live or from its files; the page draws nothing else."),
    element("p", {}, "Click a node, a cable or a folded plane. Click a host and then another host to see their paths: EVs, states, and the uSID list "
      + "hop by hop. In a running lab, buttons in the panel break the chosen thing, and undo the fault; each shows the command that does the same. "
      + "To choose a port of a host, choose its cable."),
    element("p", {}, "Small discs are packets from the packet log of a run in virtual time (--record-packets). Discs with a ring are sampled: both ends journal one data "
      + "packet in 256. The packet microscope of a pair of hosts follows one packet through the tables, and says what its receiver did."),
    element("p", {}, "Two runs are a race on one slider: two recorded ones by ./lab view RUN OTHER, or two running ones, stepped together, by "
      + "./lab run NAME --world simulated --view --transport mrc,roce."),
    element("h2", {}, "Keys"),
    element("div", { className: "keys" }, KEYS.flatMap(([key, what]) => [element("span", {}, element("kbd", {}, key)), element("span", {}, what)])),
    element("p", { className: "row" }, element("button", { onclick: () => dialog.close(), autofocus: true }, "close")),
  );
  dialog.showModal();
}
