/** The power of the machine over time; below it, carbon intensity and price as far as they are known. */

import { binOf, roundUp } from "./bins.js";
import { unpack } from "./connection.js";
import { el, setText } from "./dom.js";
import { drawLevel, largest, levelChart } from "./levels.js";
import { Panel } from "./panel.js";

/** A value with three digits or more. */
const digits = (value) =>
  value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 1 ? 3 : Math.abs(value) < 100 ? 2 : 0 });

export class PowerPanel extends Panel {
  /** Whether the power of any run is known. */
  static offered(app) {
    return app.runs.some((run) => run?.power);
  }

  constructor(app, run) {
    super(app, run, { name: "power", title: "Power", kinds: ["csv", "svg", "png"] });
    this.charts = {};
    this.captions = {};
    this.empty = el("p", { class: "caption" });
    this.body.append(this.empty);
  }

  /** Make the charts: of power, and of each signal. */
  build(signals) {
    this.empty.remove();
    const last = signals.at(-1)?.name ?? "power";
    const parts = [["power", 92, "accent"], ...signals.map((one) => [one.name, 56, "soft"])];
    for (const [key, height, colour] of parts) {
      this.captions[key] = el("p", { class: "caption" });
      this.charts[key] = levelChart({
        height,
        colour,
        filled: key === "power",
        yTicks: key === "power" ? 3 : 2,
        labels: key === last,
        hit: (x) => this.hit(x),
      });
      this.body.append(this.captions[key], this.charts[key].element);
    }
  }

  draw(data, context) {
    const [edges, power] = [unpack(data.edges), unpack(data.power)];
    if (!edges.length) {
      this.values = null;
      for (const chart of Object.values(this.charts)) drawLevel(chart, [], []);
      const known = this.app.runs[this.run]?.power;
      setText(
        this.captions.power ?? this.empty,
        known ? "Nothing has been submitted yet." : "The power of this run is not known: its machine has no description of power.",
      );
      return;
    }
    const signals = data.signals.map((one) => ({ ...one, edges: unpack(one.edges), values: unpack(one.values) }));
    if (!this.charts.power) this.build(signals);
    this.values = { edges, power, signals };
    drawLevel(this.charts.power, edges, power);
    context.sameY(this, "power", roundUp(largest(power)), (top) => this.charts.power.setY(0, top));
    setText(this.captions.power, `Power, kW, cooling included, now ${digits(data.now)}`);
    this.charts.power.describe(
      `${this.captions.power.textContent}. Most in this range, averaged: ${digits(largest(power))} kW. ${context.rangeWords}`,
    );
    for (const one of signals) {
      const chart = this.charts[one.name];
      drawLevel(chart, one.edges, one.values);
      const low = largest(Array.from(one.values, (value) => -value));
      context.sameY(
        this,
        one.name,
        roundUp(largest(one.values)),
        (top, bottom) => chart.setY(bottom, top),
        low > 0 ? -roundUp(low) : 0,
      );
      setText(this.captions[one.name], `${one.words}, ${one.unit}`);
      chart.describe(`${one.words}, ${one.unit}, now ${digits(one.values.at(-1))}. ${context.rangeWords}`);
    }
  }

  hit(x) {
    if (!this.values) return null;
    const { edges, power, signals } = this.values;
    const place = binOf(edges, x);
    if (place < 0) return null;
    const { clock } = this.app;
    const words = [`${clock.words(edges[place])} to ${clock.near(edges[place + 1], edges[place])}`, `${digits(power[place])} kW`];
    for (const one of signals) {
      const at = binOf(one.edges, x);
      if (at >= 0) words.push(`${one.words} ${digits(one.values[at])} ${one.unit}`);
    }
    return { words };
  }
}
