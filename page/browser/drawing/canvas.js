// A canvas as large as its parent, in the screen's own pixels; and the theme's colours as canvases want them.
// Browsers without a graphics processor copy a whole canvas whenever anything is drawn on it: parts that
// change at every frame have a separate canvas or element, and the others are left alone.

const NAMES = ["paper", "sheet", "ink", "soft", "line", "idle", "busy", "broken", "warn", "gone", "good", "pick"];

export class Sized {
  // Without a label, a layer above another canvas: clicks go through it. `opaque` ones must be filled, and cost less.
  constructor(parent, label, opaque = false) {
    this.canvas = document.createElement("canvas");
    if (label) this.canvas.setAttribute("aria-label", label);
    else this.canvas.className = "over";
    this.ctx = this.canvas.getContext("2d", { alpha: !opaque });
    parent.append(this.canvas);
    this.width = this.height = 0;
    new ResizeObserver(() => this.fit(parent)).observe(parent);
    this.fit(parent);
  }

  fit(parent) {
    const ratio = globalThis.devicePixelRatio || 1;
    this.width = parent.clientWidth;
    this.height = parent.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.version = (this.version ?? 0) + 1;
  }
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// The size of a letter: everything on canvases is drawn in multiples of it.
export function unit() {
  return parseFloat(getComputedStyle(document.body).fontSize);
}
