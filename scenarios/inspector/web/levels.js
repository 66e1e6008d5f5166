/** Levels over time, averaged over bins: what the charts of the load and of power have in common. */

import { steps } from "./bins.js";
import { Chart } from "./charts.js";

/** The largest value; at least 0. */
export function largest(values) {
  let found = 0;
  for (const value of values) if (value > found) found = value;
  return found;
}

/**
 * A chart of a level on the linked time axis.
 * @param {Object} options those of `Chart`
 * @param {string} options.colour key of the colour
 * @param {boolean} [options.filled] whether the area below is filled
 */
export function levelChart({ colour, filled = true, ...options }) {
  const chart = new Chart({ time: true, yTicks: 3, ...options });
  const source = chart.source("area", ["x", "y", "zero"]);
  const area = filled
    ? chart.figure.varea({ x: { field: "x" }, y1: { field: "zero" }, y2: { field: "y" }, source, fill_alpha: 0.55 })
    : null;
  const line = chart.figure.line({ x: { field: "x" }, y: { field: "y" }, source, line_width: 1 });
  chart.colour((colours) => {
    if (area) area.glyph.fill_color = colours[colour];
    line.glyph.line_color = colours[colour];
  });
  return chart;
}

/** Draw a level into its chart. */
export function drawLevel(chart, edges, values) {
  const { x, y } = steps(edges, values);
  chart.sources.area.data = { x, y, zero: new Float64Array(x.length) };
}
