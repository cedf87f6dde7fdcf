// Binary search in lines that are in order of time.

// How many lines have happened at `t`.
export function upTo(lines, t) {
  let low = 0, high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].t_ns <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}
