/** The tab "Forecast": fans of load and queue, starts of waiting jobs, and of jobs that one would submit now. */

import { binOf, roundUp, steps } from "./bins.js";
import { Chart } from "./charts.js";
import { DAY, HOUR, count, duration, plural } from "./clock.js";
import { unpack } from "./connection.js";
import { button, el, setAttribute, setHidden, setText } from "./dom.js";
import { secondsOf } from "./edit.js";
import { Panel } from "./panel.js";
import { FUTURES, HORIZONS } from "./state.js";
import { Table } from "./table.js";
import { userCell } from "./users.js";

/** Places of the bounds: 5, 25, 50, 75 and 95 %. */
const [LOWEST, LOW, MEDIAN, HIGH, HIGHEST] = [0, 1, 2, 3, 4];

/** Largest numbers of the form, as in the server's protocol. */
const MOST = { count: 1000, processors: 1e8 };

const percent = (share) => `${Math.round(100 * share)} %`;

/** A requested time in words that mean exactly it: "6 h", "90 min", "45 s". */
const requestWords = (seconds) =>
  seconds % HOUR === 0 ? `${seconds / HOUR} h` : seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;

/** What to call jobs that one would submit: "32 jobs of 4 processors for 2 h". */
const jobsWords = (job) =>
  `${job.count > 1 ? `${plural(job.count, "job")} of ` : ""}${plural(job.processors, "processor")} for ${requestWords(job.requested)}`;

/** A bound in words; null lies beyond the horizon. */
const boundWords = (clock, bound, now) => (bound === null ? "later" : clock.near(bound, now));

/** Two bounds in words: "13:10 to 16:20". */
function rangeWords(clock, bounds, [low, high], now) {
  const [one, other] = [boundWords(clock, bounds[low], now), boundWords(clock, bounds[high], now)];
  return one === other ? one : `${one} to ${other}`;
}

/** A file that is made here: the server has no more than the page. */
function csvFile(name, lines) {
  const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  const bytes = new TextEncoder().encode(`${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`);
  return { name, mime: "text/csv", data: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) };
}

/** What to simulate: how many futures, how far, and jobs that one would submit now. */
export class AskPanel extends Panel {
  constructor(app) {
    super(app, 0, { name: "forecast", title: "Forecast from this second", kinds: [], wide: true, id: "ask", saves: "ask" });
    this.both = true;
    const choice = (label, values, words, key) =>
      el(
        "div",
        { class: "choice", role: "group", "aria-label": label, data: { key } },
        ...values.map((value) => button(words(value), () => app.forecasts.choose({ [key]: value }), { data: { value } })),
      );
    this.choices = [
      choice("Futures", FUTURES, (value) => plural(value, "future"), "futures"),
      choice("How far", HORIZONS, (value) => (value === 1 ? "1 day" : "1 week"), "days"),
    ];
    this.bar = el("progress", { max: "1", value: "0", "aria-label": "Futures that are simulated" });
    this.words = el("span", { class: "about" });
    this.first = this.alternative("ask-first", "If you submitted now");
    this.second = this.alternative("ask-second", "or instead");
    this.remove = button("Remove", () => this.drop(), { class: "quiet", "aria-label": "Remove the jobs from the forecast" });
    this.problem = el("p", { class: "error", role: "alert", hidden: true });
    this.like = el("p", { class: "about" });
    this.form = el(
      "form",
      {
        class: "editor",
        "aria-label": "Jobs that you would submit now",
        on: {
          submit: (event) => {
            event.preventDefault();
            this.submit();
          },
        },
      },
      this.first.line,
      this.second.line,
      el("div", { class: "line" }, el("button", { class: "primary", text: "When would they start?" }), this.remove, this.like),
    );
    this.body.append(
      el("div", { class: "line" }, ...this.choices, this.bar, this.words),
      this.form,
      this.problem,
    );
    this.fill();
  }

  /** A line of the form: how many jobs, of how many processors, for how long. */
  alternative(id, words) {
    const input = (key, size, label) =>
      el("input", { id: `${id}-${key}`, type: "text", size, autocomplete: "off", "aria-label": `${words}: ${label}`, inputmode: key === "requested" ? null : "numeric" });
    const fields = {
      count: input("count", "4", "number of jobs"),
      processors: input("processors", "6", "processors of each job"),
      requested: input("requested", "7", "requested time"),
    };
    const line = el(
      "div",
      { class: "line", role: "group", "aria-label": words },
      el("span", { class: "edge", text: words }),
      fields.count,
      el("span", { text: "jobs of" }),
      fields.processors,
      el("span", { text: "processors for" }),
      fields.requested,
    );
    return { words, fields, line };
  }

  /** Write into the form what is asked for. */
  fill() {
    const { jobs } = this.app.forecasts.wish;
    [this.first, this.second].forEach(({ fields }, place) => {
      const job = jobs[place];
      fields.count.value = job?.count ?? 1;
      fields.processors.value = job?.processors ?? "";
      fields.requested.value = job ? requestWords(job.requested) : "";
    });
  }

  drop() {
    this.app.forecasts.choose({ jobs: [] });
    this.fill();
    this.fail("");
  }

  submit() {
    this.fail("");
    const jobs = [];
    for (const alternative of [this.first, this.second]) {
      const { fields } = alternative;
      const empty = !fields.processors.value.trim() && !fields.requested.value.trim();
      if (empty && alternative === this.second) continue;
      const job = this.jobOf(alternative);
      if (!job) return;
      jobs.push(job);
    }
    this.app.forecasts.choose({ jobs });
  }

  /** The numbers of a line; null if one of them is none, and says so. */
  jobOf({ words, fields }) {
    const job = {};
    for (const key of ["count", "processors"]) {
      const text = fields[key].value.trim();
      const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
      if (value < 1 || value > MOST[key]) {
        const what = key === "count" ? "jobs" : "processors";
        this.fail(`${words}: "${text}" ${what} is not possible; write a whole number from 1 to ${count(MOST[key])}`, fields[key]);
        return null;
      }
      job[key] = value;
    }
    const text = fields.requested.value;
    const seconds = secondsOf(text);
    if (seconds === null || seconds < 1 || seconds > 3660 * DAY) {
      this.fail(`${words}: "${text}" is not a requested time; write for example 600, 10 min, 1.5 h or 2 days`, fields.requested);
      return null;
    }
    job.requested = seconds;
    return job;
  }

  /** Show what is wrong, and where; nothing if it is empty. */
  fail(line, field = null) {
    setText(this.problem, line);
    setHidden(this.problem, !line);
    for (const { fields } of [this.first, this.second])
      for (const one of Object.values(fields)) setAttribute(one, "aria-invalid", one === field ? "true" : null);
    field?.focus();
  }

  draw() {
    this.forecasted();
  }

  forecasted() {
    const { app } = this;
    const { forecasts } = app;
    setHidden(this.element, !forecasts.possible);
    for (const choice of this.choices)
      for (const one of choice.children)
        setAttribute(one, "aria-pressed", String(Number(one.dataset.value) === forecasts.wish[choice.dataset.key]));
    const { working } = forecasts;
    setHidden(this.bar, !working);
    this.bar.value = forecasts.progress;
    const found = forecasts.found.find(Boolean);
    setText(
      this.words,
      working ? "Simulating futures ..." : found ? `Users of the futures: ${found.users}; scheduler: ${found.scheduler}. ${found.submissions}` : "",
    );
    setHidden(this.remove, !forecasts.wish.jobs.length);
    const { user } = app.state;
    setText(this.like, `Run times are drawn from the jobs of ${user === null ? "all users" : app.whoWords(user)} with such requests.`);
    const { problem } = forecasts;
    if (problem || this.served) this.fail(problem);
    this.served = problem;
  }

  /** Another user was chosen: the jobs would be theirs. */
  chosen() {
    this.forecasted();
    this.app.forecasts.soon();
  }
}

/** A chart with bands of what may come, behind a line of what has been. */
class FanChart extends Chart {
  constructor(options) {
    super(options);
    const { figure } = this;
    const band = (name, alpha) =>
      figure.varea({
        x: { field: "x" },
        y1: { field: "low" },
        y2: { field: "high" },
        source: this.source(name, ["x", "low", "high"]),
        fill_alpha: alpha,
      });
    const line = (name, width) =>
      figure.line({ x: { field: "x" }, y: { field: "y" }, source: this.source(name, ["x", "y"]), line_width: width });
    const [wide, narrow] = [band("wide", 0.22), band("narrow", 0.38)];
    const [before, median] = [line("before", 1.5), line("median", 2)];
    this.nowSpan = new Bokeh.Span({ location: -1e15, dimension: "height", line_width: 1.5 });
    figure.add_layout(this.nowSpan);
    this.colour((colours) => {
      for (const one of [wide, narrow]) one.glyph.fill_color = colours[options.colour];
      before.glyph.line_color = colours.soft;
      median.glyph.line_color = colours[options.colour];
      this.nowSpan.line_color = colours.now;
    });
  }

  /** Show what has been, and what may come. */
  show(clock, edges, bounds, beforeEdges, before) {
    this.clock = clock;
    const [low, lower, median, upper, high] = bounds.map((values) => steps(edges, values));
    this.sources.wide.data = { x: low.x, low: low.y, high: high.y };
    this.sources.narrow.data = { x: lower.x, low: lower.y, high: upper.y };
    this.sources.median.data = median;
    this.sources.before.data = steps(beforeEdges, before);
    [this.nowSpan.location] = edges;
    const horizon = edges[edges.length - 1] - edges[0];
    this.setX(Math.max(beforeEdges[0] ?? edges[0], edges[0] - horizon), edges[edges.length - 1]);
    this.followTime();
  }

  followTime() {
    if (!this.clock) return;
    const width = this.width ? this.width - 72 : this.frame().width;
    const ticks = this.clock.ticks(this.xRange.start, this.xRange.end, Math.max(2, width / 84));
    this.setTicks(this.xAxis, this.xTicker, ticks);
  }
}

/** The charts: name of the fan, caption, height, key of the colour. */
const PARTS = [
  ["load", "Processors in use", 210, "use"],
  ["queue", "Jobs in the queue", 210, "queue"],
];

export class FansPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "forecast", title: "What may come", wide: true, id: `fans-${"ab"[run]}`, saves: "fans" });
    this.why = el("p", { class: "nothing", hidden: true });
    this.charts = {};
    this.captions = {};
    const key = (kind, text) => el("span", { class: `key ${kind}`, text });
    this.inside = el(
      "div",
      {},
      el(
        "p",
        { class: "caption" },
        key("happened", "until now"),
        " ",
        key("median", "median"),
        " ",
        key("half", "50 % of the futures"),
        " ",
        key("most", "90 % of the futures"),
      ),
    );
    const pair = el("div", { class: "fans" });
    for (const [name, caption, height, colour] of PARTS) {
      this.captions[name] = el("p", { class: "caption", text: caption });
      this.charts[name] = new FanChart({ height, colour, yTicks: 4, hit: (x) => this.hit(x) });
      pair.append(el("div", {}, this.captions[name], this.charts[name].element));
    }
    this.inside.append(pair);
    this.body.append(this.why, this.inside);
  }

  draw(data, context) {
    this.data = data;
    this.context = context;
    setText(this.why, data.why);
    setHidden(this.why, !data.why);
    this.forecasted();
  }

  forecasted() {
    const { app, data } = this;
    if (!data) return;
    const found = app.forecasts.found[this.run];
    setHidden(this.inside, Boolean(data.why));
    setHidden(this.savers, Boolean(data.why) || this.isFolded);
    this.inside.classList.toggle("stale", Boolean(found) && found.at !== app.now(this.run));
    if (found === this.found || !found || data.why) return;
    this.found = found;
    const edges = unpack(found.edges);
    const beforeEdges = unpack(found.before.edges);
    this.values = { edges };
    for (const [name, caption] of PARTS) {
      const bounds = found.fans[name].map(unpack);
      const before = unpack(found.before[name]);
      this.values[name] = bounds;
      const chart = this.charts[name];
      chart.show(app.clock, edges, bounds, beforeEdges, before);
      const shown = before.slice(-bounds[HIGHEST].length);
      const top = Math.max(...bounds[HIGHEST], ...shown, name === "load" ? found.size : 0);
      chart.setY(0, name === "load" ? top * 1.06 : roundUp(top));
      setText(this.captions[name], `${caption}${name === "load" ? `, of ${count(found.size)}` : ""}`);
      chart.describe(this.description(caption, edges, bounds));
    }
    this.setAbout(`${plural(found.futures, "future")} from ${app.clock.words(found.at)}`);
  }

  /** A chart in words: now, in the middle, at the end. */
  description(caption, edges, bounds) {
    const last = edges.length - 2;
    const places = [...new Set([0, last >> 1, last])].map((place) => {
      const [low, median, high] = [LOWEST, MEDIAN, HIGHEST].map((bound) => count(bounds[bound][place]));
      return `${this.app.clock.words(edges[place])}: median ${median}, 90 % between ${low} and ${high}`;
    });
    return `${caption}, forecast. ${places.join(". ")}.`;
  }

  hit(x) {
    if (!this.values) return null;
    const { edges, load, queue } = this.values;
    const place = binOf(edges, x);
    if (place < 0) return null;
    const { clock } = this.app;
    const line = (what, bounds) =>
      `${what}: ${count(bounds[MEDIAN][place])}, 50 % ${count(bounds[LOW][place])} to ${count(bounds[HIGH][place])}, 90 % ${count(bounds[LOWEST][place])} to ${count(bounds[HIGHEST][place])}`;
    return {
      words: [
        `${clock.words(edges[place])} to ${clock.near(edges[place + 1], edges[place])}`,
        line("processors in use", load),
        line("jobs in the queue", queue),
      ],
    };
  }

  file() {
    const { edges, load, queue } = this.values ?? { edges: [], load: [], queue: [] };
    const names = ["p5", "p25", "p50", "p75", "p95"];
    const head = ["begin_s", "end_s", ...names.map((name) => `processors_in_use_${name}`), ...names.map((name) => `jobs_waiting_${name}`)];
    const rows = Array.from({ length: Math.max(edges.length - 1, 0) }, (_, place) => [
      edges[place],
      edges[place + 1],
      ...load.map((values) => values[place]),
      ...queue.map((values) => values[place]),
    ]);
    return csvFile(`forecast-${"ab"[this.run]}.csv`, [head, ...rows]);
  }
}

export class StartsPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "forecast", title: "When jobs start", wide: true, id: `starts-${"ab"[run]}`, saves: "starts" });
    this.words = el("div", { class: "asked", role: "status" });
    const bound = (key, text, places, title) => ({
      key,
      text,
      title,
      show: (_, row) => rangeWords(app.clock, row.start, places, this.found.at),
      value: (row) => row.start[places[0]] ?? Infinity,
    });
    this.table = new Table({
      kind: "starts",
      label: `When waiting jobs of run ${"AB"[run]} start`,
      columns: [
        { key: "name", text: "Job", value: (row) => row.job ?? -1 },
        {
          key: "user",
          text: "User",
          show: (user) => (user < 0 ? "" : app.who(user)),
          value: (row) => app.nameOrNumber(row.user),
          cell: (row, cell, words) => {
            if (row.user >= 0) userCell(app)(row, cell, words);
            else setText(cell, words);
          },
        },
        { key: "processors", text: "Processors", number: true, show: (value, row) => (row.count > 1 ? `${count(row.count)} \u00d7 ${count(value)}` : count(value)) },
        { key: "requested", text: "Requested", number: true, show: (seconds) => (seconds < 0 ? "none" : duration(seconds)) },
        bound("median", "Start, median", [MEDIAN, MEDIAN], "As many futures before as after"),
        bound("half", "50 %", [LOW, HIGH], "Half of the futures start it between these"),
        bound("most", "90 %", [LOWEST, HIGHEST], "Nine of ten futures start it between these"),
        { key: "within", text: "Chance to start", number: true, show: percent, title: "Share of the futures in which it starts before they end" },
        { key: "reason", text: "Why it waits", wide: true },
      ],
      keyOf: (row) => row.key,
      onPick: (row) => {
        if (row.job !== null) app.choose({ job: row.job, user: row.user });
      },
      nothing: "No job waits.",
    });
    this.body.append(this.words, this.table.element);
  }

  draw(data) {
    this.data = data;
    this.forecasted();
  }

  forecasted() {
    const { app, data } = this;
    if (!data) return;
    setHidden(this.element, Boolean(data.why));
    const found = app.forecasts.found[this.run] ?? null;
    this.body.classList.toggle("stale", Boolean(found) && found.at !== app.now(this.run));
    if (found === this.found || !found || data.why) return;
    this.found = found;
    const names = found.asked.length > 1 ? ["if submitted now", "or instead"] : ["if submitted now"];
    const asked = found.asked.map((one, place) => ({ ...one, name: names[place], key: `new-${place}` }));
    const jobs = found.jobs.map((one) => ({ ...one, name: String(one.job), key: one.job }));
    this.table.chosen = (row) => row.job !== null && row.job === app.state.job;
    this.table.setRows([...asked, ...jobs]);
    this.words.replaceChildren(...this.answers(found).map((words) => el("p", { text: words })));
    const late = [...asked, ...jobs].some((one) => one.start.includes(null));
    this.setAbout(
      [
        found.total > jobs.length ? `The first ${count(jobs.length)} of ${count(found.total)} waiting jobs are shown.` : "",
        late ? `"Later" is after ${app.clock.words(found.until)}, where the futures end.` : "",
      ]
        .filter(Boolean)
        .join(" "),
    );
  }

  /** What the futures say of the jobs that one would submit. */
  answers(found) {
    const { clock } = this.app;
    const range = (bounds) => {
      const median = boundWords(clock, bounds[MEDIAN], found.at);
      const wide = rangeWords(clock, bounds, [LOWEST, HIGHEST], found.at);
      return wide === median ? median : `${median} (90 %: ${wide})`;
    };
    const lines = found.asked.map((one) => `${jobsWords(one)}: ${one.count > 1 ? "first start" : "start"} ${range(one.start)}, ${one.count > 1 ? "all over" : "end"} ${range(one.end)}.`);
    if (found.versus) lines.push(this.comparison(found.versus));
    return lines;
  }

  comparison({ first, second, open, difference }) {
    const parts = [`The second way ends first in ${percent(second)} of the futures, the first way in ${percent(first)}`];
    if (open) parts.push(`and in ${percent(open)} neither does`);
    if (!difference) return `${parts.join(", ")}.`;
    const words = (seconds) => (Math.abs(seconds) < 60 ? "at the same time" : `${duration(Math.abs(seconds))} ${seconds < 0 ? "earlier" : "later"}`);
    const [low, median, high] = [LOWEST, MEDIAN, HIGHEST].map((bound) => words(difference[bound]));
    return `${parts.join(", ")}; the second way ends ${median}${low === high ? "" : ` (90 %: ${low} to ${high})`}.`;
  }

  chosen() {
    this.table.setChosen((row) => row.job !== null && row.job === this.app.state.job);
  }

  file() {
    const names = ["p5", "p25", "p50", "p75", "p95"];
    const head = ["job", "user", "count", "processors", "requested_time_s", ...names.map((name) => `start_${name}_s`), "starts_within_horizon", "reason"];
    const rows = (this.table.ordered ?? []).map((row) => [
      row.job ?? "",
      row.user < 0 ? "" : row.user,
      row.count,
      row.processors,
      row.requested < 0 ? "" : row.requested,
      ...row.start.map((bound) => bound ?? ""),
      row.within,
      row.reason,
    ]);
    return csvFile(`forecast-starts-${"ab"[this.run]}.csv`, [head, ...rows]);
  }
}
