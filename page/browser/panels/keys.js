// The keyboard.

import { help } from "./help.js";

export function listen(page) {
  const { player, choice } = page;
  const acts = {
    " ": () => player.toggle(), n: () => player.step(true), p: () => player.step(false),
    ArrowLeft: () => player.nudge(-0.01), ArrowRight: () => player.nudge(0.01), "+": () => player.faster(1), "=": () => player.faster(1),
    "-": () => player.faster(-1), Home: () => player.go(0), End: () => player.go(player.length), l: () => player.live && player.follow(),
    r: () => page.turnLane(),
    b: () => document.querySelector("#panel button")?.focus(),
    "[": () => choice.nextPath(page.lanes[choice.lane].scene, -1), "]": () => choice.nextPath(page.lanes[choice.lane].scene, 1),
    u: () => page.lanes.forEach((lane) => lane.foldAll()), d: () => page.turnTheme(), Escape: () => choice.clear(),
    "?": () => help(document.getElementById("help")), "/": () => document.getElementById("pick").select(),
  };
  document.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    const pressing = event.target instanceof HTMLButtonElement && event.key === " ";
    if (!act || typing || pressing || event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act();
    page.changed();
  });
}
