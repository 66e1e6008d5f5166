/** One user: words, week, think times, jobs, decisions. */

import { roundUp } from "./bins.js";
import { Chart } from "./charts.js";
import { count, duration, plural } from "./clock.js";
import { unpack } from "./connection.js";
import { el, setHidden, setText } from "./dom.js";
import { Panel } from "./panel.js";
import { Table } from "./table.js";

const HOURS = 168;

/** Ticks of durations on logarithmic axes. */
const DURATIONS = [
  [1, "1 s"],
  [10, "10 s"],
  [60, "1 min"],
  [600, "10 min"],
  [3600, "1 h"],
  [21600, "6 h"],
  [86400, "1 day"],
  [604800, "1 week"],
];

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** A line of words about the user. */
export class WordsPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "user", title: "User", kinds: [], wide: true, id: `words-${"ab"[run]}`, saves: "words" });
    this.words = el("p", { class: "user-words" });
    this.body.append(this.words);
  }

  draw(data) {
    this.setTitle(this.app.whoWords(this.app.state.user, true));
    setText(this.words, data.words ?? "");
  }
}

/** Jobs submitted in each hour of the week. */
export class WeekPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "user", title: "Week", kinds: ["csv", "svg", "png"], id: `week-${"ab"[run]}`, saves: "week" });
    this.chart = new Chart({ height: 230, hit: (x) => this.hit(x), yTicks: 4 });
    const { figure } = this.chart;
    const quads = (name, more) =>
      figure.quad({
        left: { field: "left" },
        right: { field: "right" },
        bottom: { field: "bottom" },
        top: { field: "top" },
        source: this.chart.source(name, ["left", "right", "bottom", "top"]),
        line_color: null,
        ...more,
      });
    const open = quads("open", {});
    const recorded = quads("recorded", {});
    const simulated = figure.step({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("simulated", ["x", "y"]),
      mode: "after",
      line_width: 1.75,
    });
    const activity = figure.line({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("activity", ["x", "y"]),
      line_width: 1.5,
      line_dash: [2, 3],
    });
    this.chart.colour((colours) => {
      open.glyph.fill_color = colours.accent;
      open.glyph.fill_alpha = 0.1;
      recorded.glyph.fill_color = colours.recorded;
      recorded.glyph.fill_alpha = 0.8;
      simulated.glyph.line_color = colours.accent;
      activity.glyph.line_color = colours.soft;
    });
    this.chart.setX(0, HOURS);
    this.chart.setTicks(
      this.chart.xAxis,
      this.chart.xTicker,
      DAYS.map((text, day) => ({ at: 24 * day, text })),
    );
    this.caption = el(
      "p",
      { class: "caption" },
      el("span", { class: "key recorded", text: "recorded" }),
      " ",
      el("span", { class: "key simulated", text: "simulated" }),
      " ",
      el("span", { class: "key open", text: "at work" }),
      " jobs submitted in each hour of the week",
    );
    this.body.append(this.caption, this.chart.element);
  }

  draw(data, context) {
    setHidden(this.element, !data.week);
    if (!data.week) return;
    const week = {
      recorded: unpack(data.week.recorded),
      simulated: unpack(data.week.simulated),
      open: data.week.open ? unpack(data.week.open) : null,
      activity: data.week.activity ? unpack(data.week.activity) : null,
    };
    this.week = week;
    this.setTitle(`Week of ${this.app.whoWords(this.app.state.user)}`);
    const top = roundUp(Math.max(1, ...week.recorded, ...week.simulated));
    const hours = [...Array(HOURS).keys()];
    const bars = (shown, height) => ({
      left: shown,
      right: shown.map((hour) => hour + 1),
      bottom: shown.map(() => 0),
      top: shown.map(height),
    });
    this.chart.sources.recorded.data = bars(
      hours.filter((hour) => week.recorded[hour] > 0),
      (hour) => week.recorded[hour],
    );
    this.chart.sources.open.data = bars(week.open ? hours.filter((hour) => week.open[hour]) : [], () => 4 * top);
    this.chart.sources.simulated.data = { x: [...hours, HOURS], y: [...week.simulated, week.simulated[HOURS - 1] ?? 0] };
    const busiest = week.activity ? Math.max(...week.activity, 1e-9) : 1;
    this.chart.sources.activity.data = week.activity
      ? { x: hours.map((hour) => hour + 0.5), y: [...week.activity].map((value) => (value / busiest) * top) }
      : { x: [], y: [] };
    context.sameY(this, "week", top, (largest) => this.chart.setY(0, largest));
    setHidden(this.caption.querySelector(".open"), !week.open);
    const sum = (values) => [...values].reduce((total, value) => total + (value || 0), 0);
    this.chart.describe(
      `Jobs in each hour of the week: ${count(sum(week.recorded))} recorded, ${count(sum(week.simulated))} simulated.`,
    );
  }

  hit(x) {
    const hour = Math.floor(x);
    if (!this.week || hour < 0 || hour >= HOURS) return null;
    const { recorded, simulated, open } = this.week;
    const words = [
      `${DAYS[Math.floor(hour / 24)]} ${hour % 24}:00 to ${(hour % 24) + 1}:00`,
      `${count(recorded[hour])} recorded, ${count(simulated[hour])} simulated`,
    ];
    if (open) words.push(open[hour] ? "at work" : "not at work");
    return { words };
  }
}

/** Think times against the response times before them. */
export class PausesPanel extends Panel {
  constructor(app, run) {
    super(app, run, {
      name: "user",
      title: "Think times",
      kinds: ["csv", "svg", "png"],
      id: `pauses-${"ab"[run]}`,
      saves: "pauses",
    });
    this.chart = new Chart({
      height: 230,
      xType: "log",
      hit: (x, y, at) => this.hit(x, y, at),
      click: (hit) => hit && app.chooseUnit(hit.key),
    });
    const { figure } = this.chart;
    const recorded = figure.scatter({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("recorded", ["x", "y"]),
      marker: "circle",
      size: 6,
      line_color: null,
    });
    const simulated = figure.scatter({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("simulated", ["x", "y"]),
      marker: "x",
      size: 7,
      line_width: 1.75,
    });
    const chosen = figure.scatter({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("chosen", ["x", "y"]),
      marker: "circle",
      size: 14,
      fill_color: null,
      line_width: 2.5,
    });
    this.chart.colour((colours) => {
      recorded.glyph.fill_color = colours.recorded;
      recorded.glyph.fill_alpha = 0.75;
      simulated.glyph.line_color = colours.accent;
      chosen.glyph.line_color = colours.ink;
    });
    const ticks = DURATIONS.map(([at, text]) => ({ at, text }));
    this.chart.setTicks(this.chart.xAxis, this.chart.xTicker, ticks);
    this.chart.setYTicks(ticks);
    this.chart.setX(0.8, 1.2e6);
    this.chart.setY(0.8, 1.2e6);
    this.body.append(
      el(
        "p",
        { class: "caption" },
        el("span", { class: "key recorded", text: "recorded" }),
        " ",
        el("span", { class: "key simulated", text: "simulated" }),
        " think time (up) after a response time (right)",
      ),
      this.chart.element,
    );
  }

  draw(data) {
    setHidden(this.element, !data.pauses);
    if (!data.pauses) return;
    const clean = (values) =>
      Float64Array.from(unpack(values), (value) => (value === null || Number.isNaN(value) ? NaN : Math.max(1, value)));
    const { pauses } = data;
    this.unit = data.graph?.kind === "batch" ? "batch" : "session";
    this.points = { x: clean(pauses.response), y: clean(pauses.pause), units: unpack(pauses.unit) };
    this.setTitle(`Think times of ${this.app.whoWords(this.app.state.user)}`);
    this.chart.sources.simulated.data = { x: this.points.x, y: this.points.y };
    this.chart.sources.recorded.data = { x: clean(pauses.recorded_response), y: clean(pauses.recorded_pause) };
    const sorted = [...this.points.y].filter((value) => value > 0).sort((one, other) => one - other);
    const middle = sorted.length ? ` Half of the think times are shorter than ${duration(sorted[sorted.length >> 1])}.` : "";
    this.chart.describe(`${count(this.points.x.length)} think times against the response times before them.${middle}`);
    this.chosen();
  }

  chosen() {
    if (!this.points) return;
    const to = { x: [], y: [] };
    this.points.units.forEach((unit, place) => {
      if (unit !== this.app.unit || this.app.unit === null) return;
      to.x.push(this.points.x[place]);
      to.y.push(this.points.y[place]);
    });
    this.chart.sources.chosen.data = to;
  }

  hit(x, y) {
    if (!this.points) return null;
    const { width, height } = this.chart.frame();
    const { xRange, yRange } = this.chart;
    const perX = width / Math.log(xRange.end / xRange.start);
    const perY = height / Math.log(yRange.end / yRange.start);
    let [best, found] = [10, -1];
    for (let place = 0; place < this.points.x.length; place++) {
      const far = Math.hypot(Math.log(this.points.x[place] / x) * perX, Math.log(this.points.y[place] / y) * perY);
      if (far < best) [best, found] = [far, place];
    }
    if (found < 0) return null;
    return {
      key: this.points.units[found],
      words: [
        `Before ${this.unit} ${this.points.units[found]}`,
        `think time ${duration(this.points.y[found])}`,
        `after a response time of ${duration(this.points.x[found])}`,
      ],
    };
  }
}

/** Jobs of the user, newest first. */
export class JobsPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "user", title: "Jobs", wide: true, id: `jobs-${"ab"[run]}`, saves: "jobs" });
    this.table = new Table({
      kind: "jobs",
      label: `Jobs of the user in run ${"AB"[run]}`,
      columns: this.columns("Session"),
      keyOf: (row) => row.job,
      onPick: (row) => app.chooseUnit(row.unit, row.job),
      search: true,
      nothing: "No job yet.",
    });
    this.body.append(this.table.element);
  }

  /** @param {string} unit "Session" or "Batch" */
  columns(unit) {
    const when = (second) => this.app.clock.words(second);
    return [
      { key: "job", text: "Job", number: true },
      { key: "unit", text: unit, number: true, title: "Its number in the graph" },
      { key: "state", text: "State" },
      { key: "processors", text: "Processors", number: true, show: count },
      { key: "submitted", text: "Submitted", number: true, show: when },
      { key: "waited", text: "Waited", number: true, show: duration },
      { key: "ran", text: "Ran", number: true, show: duration },
      { key: "why", text: "Why it waited", wide: true },
      { key: "next", text: "What the user did next", wide: true },
    ];
  }

  draw(data) {
    const rows = data.jobs ?? [];
    this.setTitle(`Jobs of ${this.app.whoWords(this.app.state.user)}`);
    const total = data.jobs_total ?? rows.length;
    this.setAbout(
      total > rows.length
        ? `${count(total)} jobs, the latest ${count(rows.length)} shown; the CSV file has all.`
        : `${plural(total, "job")}, the latest first.`,
    );
    this.table.chosen = (row) => this.isChosen(row);
    this.table.setColumns(this.columns(data.graph?.kind === "batch" ? "Batch" : "Session"));
    this.table.setRows(rows);
  }

  isChosen(row) {
    const { unit, state } = this.app;
    return row.job === state.job || (unit !== null && row.unit === unit);
  }

  chosen() {
    this.table.setChosen((row) => this.isChosen(row));
    this.table.reveal();
  }
}

/** Decisions of the user, newest first. */
export class DecisionsPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "user", title: "Decisions", id: `decisions-${"ab"[run]}`, saves: "decisions" });
    this.table = new Table({
      kind: "decisions",
      label: `Decisions of the user in run ${"AB"[run]}`,
      columns: [
        { key: "at", text: "Local time", number: true, show: (second) => app.clock.words(second) },
        { key: "text", text: "What and why", wide: true },
      ],
      keyOf: (row) => `${row.at} ${row.text}`,
      search: true,
      nothing: "Nothing yet.",
    });
    this.body.append(this.table.element);
  }

  draw(data) {
    this.setTitle(`Decisions of ${this.app.whoWords(this.app.state.user)}, the latest first`);
    this.table.options.nothing = data.logged === false ? "No decisions were kept of this run; run it again with --log-decisions." : "Nothing yet.";
    this.setAbout(data.log_full ? "The log is full: later decisions are not in it." : "");
    this.table.setRows(data.decisions ?? []);
  }
}
