/** Values in bins of time. */

/** Points of a step function with bins; it ends where values are no longer known. */
export function steps(edges, values) {
  let size = values.length;
  while (size > 0 && !(values[size - 1] > -Infinity)) size -= 1;
  const x = new Float64Array(2 * size);
  const y = new Float64Array(2 * size);
  for (let place = 0; place < size; place++) {
    x[2 * place] = edges[place];
    x[2 * place + 1] = edges[place + 1];
    y[2 * place] = y[2 * place + 1] = values[place] ?? NaN;
  }
  return { x, y };
}

/** The bin of sorted edges that holds a value; -1 outside. */
export function binOf(edges, value) {
  if (!edges.length || value < edges[0] || value >= edges[edges.length - 1]) return -1;
  let low = 0;
  let high = edges.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}

/** A round number at least as large: the end of a y axis. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= value) * power;
}
