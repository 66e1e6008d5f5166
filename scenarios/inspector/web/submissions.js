/** Jobs submitted so far, recorded and simulated. */

import { binOf } from "./bins.js";
import { Chart } from "./charts.js";
import { count } from "./clock.js";
import { unpack } from "./connection.js";
import { el } from "./dom.js";
import { Panel } from "./panel.js";

export class SubmissionsPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "submissions", title: "Submissions, recorded and simulated", kinds: ["csv", "svg", "png"] });
    this.chart = new Chart({ height: 278, time: true, hit: (x) => this.hit(x) });
    const { figure } = this.chart;
    const recorded = figure.line({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("recorded", ["x", "y"]),
      line_width: 3.5,
    });
    const simulated = figure.line({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("simulated", ["x", "y"]),
      line_width: 2,
    });
    this.chart.colour((colours) => {
      recorded.glyph.line_color = colours.recorded;
      simulated.glyph.line_color = colours.accent;
    });
    const key = el(
      "p",
      { class: "caption" },
      el("span", { class: "key recorded", text: "recorded" }),
      " ",
      el("span", { class: "key simulated", text: "simulated" }),
      " jobs submitted so far",
    );
    this.body.append(key, this.chart.element);
  }

  draw(data, context) {
    const times = unpack(data.times);
    const clean = (values) => Float64Array.from(values, (value) => value ?? NaN);
    const recorded = clean(unpack(data.recorded));
    const simulated = clean(unpack(data.simulated));
    this.values = { times, recorded, simulated };
    this.chart.sources.recorded.data = { x: times, y: recorded };
    this.chart.sources.simulated.data = { x: times, y: simulated };
    let [low, high] = [Infinity, -Infinity];
    for (const values of [recorded, simulated]) {
      for (const value of values) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (low > high) [low, high] = [0, 1];
    const room = Math.max(1, 0.04 * (high - low));
    context.sameY(this, "top", high + room, (top, bottom) => this.chart.setY(bottom, top), Math.max(0, low - room));
    this.setAbout(data.words);
    this.chart.describe(`Jobs submitted so far: ${data.words ?? ""}. ${context.rangeWords}`);
  }

  hit(x) {
    if (!this.values) return null;
    const place = binOf(this.values.times, x);
    if (place < 0) return null;
    const { times, recorded, simulated } = this.values;
    const words = [this.app.clock.words(times[place])];
    if (recorded[place] >= 0) words.push(`${count(recorded[place])} jobs in the record`);
    words.push(simulated[place] >= 0 ? `${count(simulated[place])} jobs simulated` : "not reached yet");
    return { words };
  }
}
