/** Processors in use and the queue over time. */

import { binOf, roundUp, steps } from "./bins.js";
import { count } from "./clock.js";
import { unpack } from "./connection.js";
import { el, setText } from "./dom.js";
import { drawLevel, largest, levelChart } from "./levels.js";
import { Panel } from "./panel.js";

/** The charts: column, caption, height, key of the colour. */
const PARTS = [
  ["in_use", "Processors in use", 118, "use"],
  ["waiting", "Jobs in the queue", 68, "queue"],
  ["asked", "Processors requested by the queue", 92, "asked"],
];

export class LoadPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "load", title: "Processors and queue", kinds: ["csv", "svg", "png"] });
    this.charts = {};
    this.captions = {};
    for (const [key, caption, height, colour] of PARTS) {
      this.captions[key] = el("p", { class: "caption", text: caption });
      const chart = levelChart({ height, colour, labels: key === "asked", hit: (x) => this.hit(x) });
      if (key === "in_use") {
        const size = chart.figure.line({
          x: { field: "x" },
          y: { field: "y" },
          source: chart.source("size", ["x", "y"]),
          line_width: 1.5,
          line_dash: [5, 4],
        });
        const up = chart.figure.line({
          x: { field: "x" },
          y: { field: "y" },
          source: chart.source("up", ["x", "y"]),
          line_width: 1.5,
        });
        chart.colour((colours) => {
          size.glyph.line_color = colours.soft;
          up.glyph.line_color = colours.warn;
        });
      }
      this.charts[key] = chart;
      this.body.append(this.captions[key], chart.element);
    }
  }

  draw(data, context) {
    const values = { edges: unpack(data.edges) };
    for (const key of ["in_use", "waiting", "asked", "up", "size"]) values[key] = unpack(data[key]);
    this.values = values;
    for (const [key] of PARTS) drawLevel(this.charts[key], values.edges, values[key]);
    this.charts.in_use.sources.size.data = steps(values.edges, values.size);
    const differs = values.up.length && values.up.some((up, place) => up < values.size[place]);
    this.charts.in_use.sources.up.data = differs ? steps(values.edges, values.up) : { x: [], y: [] };
    const sizes = Math.max(largest(values.size), largest(values.in_use));
    context.sameY(this, "in_use", sizes * 1.06 || 1, (top) => this.charts.in_use.setY(0, top));
    for (const key of ["waiting", "asked"])
      context.sameY(this, key, roundUp(largest(values[key])), (top) => this.charts[key].setY(0, top));
    const place = this.binOfNow(values, context.now);
    const last = (key) => (place < 0 ? null : values[key][place]);
    const [used, size, waiting, asked] = [
      data.used_now ?? last("in_use"),
      data.size_now ?? last("size"),
      data.waiting_now ?? last("waiting"),
      data.asked_now ?? last("asked"),
    ];
    setText(
      this.captions.in_use,
      `Processors in use, now ${count(used)} of ${count(size)}${differs ? "; red line: processors that are up" : ""}`,
    );
    setText(this.captions.waiting, `Jobs in the queue, now ${count(waiting)}`);
    setText(this.captions.asked, `Processors requested by the queue, now ${count(asked)}`);
    // Bins are averages: what is there now may be more.
    const inView = context.now >= values.edges[0] && context.now <= values.edges[values.edges.length - 1];
    for (const [key, current] of [
      ["in_use", used],
      ["waiting", waiting],
      ["asked", asked],
    ]) {
      this.charts[key].describe(
        `${this.captions[key].textContent}. Most in this range: ${count(Math.max(largest(values[key]), inView ? current : 0))}. ${context.rangeWords}`,
      );
    }
  }

  /** The last bin that has a value at or before now. */
  binOfNow(values, now) {
    let place = binOf(values.edges, Math.min(now, values.edges[values.edges.length - 1] - 1e-6));
    while (place > 0 && !(values.in_use[place] >= 0)) place -= 1;
    return place;
  }

  hit(x) {
    if (!this.values) return null;
    const place = binOf(this.values.edges, x);
    if (place < 0) return null;
    const { edges, in_use: used, size, waiting, asked } = this.values;
    const clock = this.app.clock;
    const when = `${clock.words(edges[place])} to ${clock.near(edges[place + 1], edges[place])}`;
    if (!(used[place] >= 0)) return { words: [when, "not reached yet"] };
    return {
      words: [
        when,
        `${count(used[place])} of ${count(size[place])} processors in use`,
        `${count(waiting[place])} jobs wait for ${count(asked[place])} processors`,
      ],
    };
  }
}
