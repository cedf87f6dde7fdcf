// Small shapes that mean the same everywhere on the page; colour is never their only difference.

export const SHAPES = {
  drop: { name: "dropped", colour: "broken", draw: cross },
  trims: { name: "trimmed", colour: "warn", draw: triangle },
  marks: { name: "ECN-marked", colour: "gone", draw: disc },
  resent: { name: "sent again", colour: "busy", draw: square },
  timeouts: { name: "timed out", colour: "broken", draw: hourglass },
  probes: { name: "probed", colour: "good", draw: diamond },
};

export function shape(ctx, kind, x, y, size, colours) {
  const { colour, draw } = SHAPES[kind];
  ctx.fillStyle = ctx.strokeStyle = colours[colour];
  ctx.lineWidth = Math.max(1.5, size / 3);
  ctx.beginPath();
  draw(ctx, x, y, size);
}

function cross(ctx, x, y, s) {
  ctx.moveTo(x - s, y - s);
  ctx.lineTo(x + s, y + s);
  ctx.moveTo(x - s, y + s);
  ctx.lineTo(x + s, y - s);
  ctx.stroke();
}

function triangle(ctx, x, y, s) {
  polygon(ctx, [[x - s, y + s], [x + s, y + s], [x, y - s]]);
}

function disc(ctx, x, y, s) {
  ctx.arc(x, y, s, 0, 7);
  ctx.fill();
}

function square(ctx, x, y, s) {
  ctx.fillRect(x - s, y - s, 2 * s, 2 * s);
}

function hourglass(ctx, x, y, s) {
  polygon(ctx, [[x - s, y - s], [x + s, y - s], [x - s, y + s], [x + s, y + s]]);
}

function diamond(ctx, x, y, s) {
  polygon(ctx, [[x, y - s], [x + s, y], [x, y + s], [x - s, y]]);
}

function polygon(ctx, points) {
  for (const [index, [x, y]] of points.entries()) ctx[index ? "lineTo" : "moveTo"](x, y);
  ctx.closePath();
  ctx.fill();
}

// How a cable is drawn whose load is not sampled.
export const UNSAMPLED = [1, 5];

// How a cable or switch in a condition is drawn: dashes, colour, and the sign in its middle.
export const CONDITIONS = {
  dead: { dash: [7, 6], colour: "broken", sign: "✕" },
  crashed: { dash: [7, 6], colour: "broken", sign: "✕" },
  stopped: { dash: [2, 4], colour: "broken", sign: "■" },
  lossy: { dash: [12, 4, 2, 4], colour: "warn", sign: "%" },
  late: { dash: [2, 6], colour: "warn", sign: "…" },
  slow: { dash: [4, 3], colour: "warn", sign: "▾" },
  drained: { dash: [1, 3], colour: "gone", sign: "⊘" },
};
