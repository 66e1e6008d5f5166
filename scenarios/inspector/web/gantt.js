/** Jobs that run and ran, coloured by user; a heat map if there are too many. */

import { binOf } from "./bins.js";
import { Chart } from "./charts.js";
import { duration, plural } from "./clock.js";
import { unpack } from "./connection.js";
import { el, setHidden } from "./dom.js";
import { colourOfUser, inkOn, theme } from "./palette.js";
import { Panel } from "./panel.js";

/** Shares of the machine that the heat map tells apart, and their words. */
const SHARES = [
  [0.001, "a trace"],
  [0.02, "2 %"],
  [0.05, "5 %"],
  [0.1, "10 %"],
  [0.25, "a quarter"],
  [0.5, "half or more"],
];

/** Most names written on rectangles. */
const MOST_NAMES = 60;

const HEIGHT = 400;

export class GanttPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "gantt", title: "Jobs that run and ran, by user", kinds: ["csv", "svg", "png"] });
    this.chart = new Chart({
      height: HEIGHT,
      time: true,
      hit: (x, y, at) => this.hit(x, y, at),
      click: (hit) => this.click(hit),
      yTicks: 5,
    });
    const { figure } = this.chart;
    const boxes = this.chart.source("boxes", ["left", "right", "bottom", "top", "colour", "alpha"]);
    this.boxes = figure.quad({
      left: { field: "left" },
      right: { field: "right" },
      bottom: { field: "bottom" },
      top: { field: "top" },
      source: boxes,
      fill_color: { field: "colour" },
      fill_alpha: { field: "alpha" },
      line_width: 0.75,
    });
    const lit = this.chart.source("lit", ["left", "right", "bottom", "top"]);
    this.lit = figure.quad({
      left: { field: "left" },
      right: { field: "right" },
      bottom: { field: "bottom" },
      top: { field: "top" },
      source: lit,
      fill_color: null,
      line_width: 2,
    });
    const chosen = this.chart.source("chosen", ["left", "right", "bottom", "top"]);
    this.chosenBox = figure.quad({
      left: { field: "left" },
      right: { field: "right" },
      bottom: { field: "bottom" },
      top: { field: "top" },
      source: chosen,
      fill_color: null,
      line_width: 3,
    });
    const names = this.chart.source("names", ["x", "y", "text", "colour"]);
    figure.text({
      x: { field: "x" },
      y: { field: "y" },
      text: { field: "text" },
      source: names,
      text_color: { field: "colour" },
      text_font_size: "11px",
      text_baseline: "middle",
      text_align: "center",
      text_font: getComputedStyle(document.body).fontFamily,
    });
    this.size = figure.line({
      x: { field: "x" },
      y: { field: "y" },
      source: this.chart.source("size", ["x", "y"]),
      line_dash: [5, 4],
      line_width: 1.5,
    });
    this.chart.colour((colours) => {
      this.boxes.glyph.line_color = colours.surface;
      this.lit.glyph.line_color = colours.warn;
      this.chosenBox.glyph.line_color = colours.ink;
      this.size.glyph.line_color = colours.soft;
      if (this.data) this.paint();
      this.settled();
    });
    this.legend = el("p", { class: "caption heat", hidden: true }, "Share of the machine: ");
    SHARES.forEach(([, words], place) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.opacity = String((place + 1) / SHARES.length);
      this.legend.append(el("span", { class: "step" }, swatch, words));
    });
    this.caption = el("p", { class: "caption", text: "Colours are users; pale is what is expected of running jobs." });
    this.chart.glass.addEventListener("keydown", (event) => {
      if (event.key === "[" || event.key === "]") this.walk(event.key === "]" ? 1 : -1);
    });
    this.body.append(this.legend, this.caption, this.chart.element);
  }

  draw(data, context) {
    this.data = data.density ? null : data;
    this.density = data.density ?? null;
    this.blockers = context.blockers;
    this.setAbout(data.words);
    setHidden(this.legend, !this.density);
    setHidden(this.caption, Boolean(this.density));
    if (this.density) this.drawDensity(data);
    else {
      this.read(data);
      if (this.wasDensity) this.chart.plainY();
      this.wasDensity = false;
      context.sameY(this, "rows", Math.max(data.rows ?? 1, data.size ?? 1) * 1.02, (top) => this.chart.setY(0, top));
      this.paint();
      const size = data.size ?? 0;
      this.chart.sources.size.data = { x: [-1e12, 1e12], y: [size, size] };
    }
    this.chart.describe(`${data.words ?? ""}. ${context.rangeWords} The keys [ and ] choose the job before or after.`);
  }

  read(data) {
    this.jobs = {};
    for (const key of ["job", "user", "processors", "submitted", "start", "end", "running", "requested", "state", "free", "ahead"])
      this.jobs[key] = unpack(data[key]);
    this.jobs.queue = data.queue ? unpack(data.queue) : null;
    this.pieces = { job: unpack(data.piece), bottom: unpack(data.bottom), top: unpack(data.top) };
  }

  /** Put the rectangles into the figure: what ran strong, what is expected pale. */
  paint() {
    const { job: pieces, bottom, top } = this.pieces;
    const { job, user, start, end, running } = this.jobs;
    const now = this.app.now(this.run);
    const chosenUser = this.app.state.user;
    const blocking = new Set((this.blockers?.jobs ?? []).map((one) => one.job));
    const someone = chosenUser !== null && (blocking.size > 0 || this.hasUser(chosenUser));
    const pale = theme().pale;
    const to = { left: [], right: [], bottom: [], top: [], colour: [], alpha: [] };
    const put = (left, right, low, high, colour, alpha) => {
      to.left.push(left);
      to.right.push(right);
      to.bottom.push(low);
      to.top.push(high);
      to.colour.push(colour);
      to.alpha.push(alpha);
    };
    for (let place = 0; place < pieces.length; place++) {
      const one = pieces[place];
      const strong = !someone || user[one] === chosenUser || blocking.has(job[one]);
      const colour = strong ? colourOfUser(user[one]) : pale;
      const until = running[one] ? Math.min(end[one], now) : end[one];
      put(start[one], until, bottom[place], top[place], colour, strong ? 0.95 : 0.6);
      if (running[one] && end[one] > until) put(until, end[one], bottom[place], top[place], colour, strong ? 0.35 : 0.25);
    }
    this.chart.sources.boxes.data = to;
    this.mark(job);
    this.someone = someone;
  }

  /** The ranges are final. */
  settled() {
    if (this.data) this.writeNames(this.someone);
  }

  hasUser(number) {
    return this.jobs.user.includes(number);
  }

  /** Outline the chosen job and what blocks it. */
  mark(job) {
    const chosenJob = this.app.state.job;
    const blocking = new Set((this.blockers?.jobs ?? []).map((one) => one.job));
    const boxes = (wanted) => {
      const to = { left: [], right: [], bottom: [], top: [] };
      if (wanted) {
        this.pieces.job.forEach((one, place) => {
          if (!wanted(job[one])) return;
          to.left.push(this.jobs.start[one]);
          to.right.push(this.jobs.end[one]);
          to.bottom.push(this.pieces.bottom[place]);
          to.top.push(this.pieces.top[place]);
        });
      }
      return to;
    };
    this.setMark("lit", boxes(blocking.size ? (one) => blocking.has(one) : null));
    this.setMark("chosen", boxes(chosenJob !== null ? (one) => one === chosenJob : null));
  }

  setMark(name, boxes) {
    const source = this.chart.sources[name];
    if (boxes.left.length || source.data.left.length) source.data = boxes;
  }

  /** Write the user on the largest rectangles. */
  writeNames(someone) {
    const { job: pieces, bottom, top } = this.pieces;
    const { user, start, end } = this.jobs;
    const frame = this.chart.frame();
    const { xRange, yRange } = this.chart;
    const perX = frame.width / (xRange.end - xRange.start);
    const perY = frame.height / (yRange.end - yRange.start);
    const found = [];
    for (let place = 0; place < pieces.length; place++) {
      const one = pieces[place];
      if (someone && user[one] !== this.app.state.user) continue;
      const left = Math.max(start[one], xRange.start);
      const right = Math.min(end[one], xRange.end);
      const width = (right - left) * perX;
      if (width < 26 || (top[place] - bottom[place]) * perY < 14) continue;
      const text = this.app.who(user[one]);
      if (text.length * 6.6 + 6 > width) continue;
      found.push({
        x: (left + right) / 2,
        y: (bottom[place] + top[place]) / 2,
        text,
        colour: right > this.app.now(this.run) ? theme().ink : inkOn(colourOfUser(user[one])),
        area: width * (top[place] - bottom[place]),
        pale: this.jobs.running[one],
      });
      if (this.jobs.running[one]) found.at(-1).colour = inkOn(colourOfUser(user[one]));
      if (this.jobs.running[one] && (left + right) / 2 > this.app.now(this.run)) found.at(-1).colour = theme().ink;
    }
    found.sort((one, other) => other.area - one.area);
    const most = found.slice(0, MOST_NAMES);
    this.chart.sources.names.data = Object.fromEntries(
      ["x", "y", "text", "colour"].map((key) => [key, most.map((one) => one[key])]),
    );
  }

  /** Users from busy to less busy, time from left to right. */
  drawDensity(data) {
    const { edges: packed, users, share: packedShare } = data.density;
    const edges = unpack(packed);
    const share = unpack(packedShare);
    const size = edges.length - 1;
    this.heat = { edges, users, share, size };
    const to = { left: [], right: [], bottom: [], top: [], colour: [], alpha: [] };
    const colour = theme().accent;
    for (let row = 0; row < users.length; row++) {
      for (let bin = 0; bin < size; bin++) {
        const value = share[row * size + bin];
        if (!(value >= SHARES[0][0])) continue;
        let level = 0;
        while (level + 1 < SHARES.length && value >= SHARES[level + 1][0]) level += 1;
        to.left.push(edges[bin]);
        to.right.push(edges[bin + 1]);
        to.bottom.push(users.length - row - 0.95);
        to.top.push(users.length - row - 0.05);
        to.colour.push(colour);
        to.alpha.push((level + 1) / SHARES.length);
      }
    }
    this.wasDensity = true;
    this.chart.sources.boxes.data = to;
    for (const name of ["lit", "chosen"]) this.setMark(name, { left: [], right: [], bottom: [], top: [] });
    this.chart.sources.names.data = { x: [], y: [], text: [], colour: [] };
    this.chart.sources.size.data = { x: [], y: [] };
    this.chart.setY(0, users.length);
    const words = (user) => (user < 0 ? "others" : this.app.who(user).slice(0, 9));
    this.chart.setYTicks(users.map((user, row) => ({ at: users.length - row - 0.5, text: words(user) })));
  }

  hit(x, y, at) {
    if (this.density) return this.hitDensity(x, y);
    if (!this.data) return null;
    const { job: pieces, bottom, top } = this.pieces;
    const { start, end } = this.jobs;
    for (let place = pieces.length - 1; place >= 0; place--) {
      const one = pieces[place];
      if (y < bottom[place] || y > top[place] || x < start[one] - 2 * at.perX || x > end[one] + 2 * at.perX) continue;
      return { key: one, words: this.wordsOf(one) };
    }
    return null;
  }

  wordsOf(one) {
    const { job, user, processors, submitted, start, end, running, requested, state, free, ahead, queue } = this.jobs;
    const { clock } = this.app;
    const lines = [
      `Job ${job[one]} of ${this.app.whoWords(user[one])}`,
      `${plural(processors[one], "processor")}${requested[one] >= 0 ? `, ${duration(requested[one])} requested` : ", no time requested"}`,
      `waited ${duration(start[one] - submitted[one])}, submitted ${clock.near(submitted[one], start[one])}`,
      ...(free?.[one] >= 0
        ? [`then ${plural(free[one], "processor")} ${free[one] === 1 ? "was" : "were"} free, ${plural(ahead[one], "job")} waited already`]
        : []),
      running[one]
        ? `runs since ${clock.words(start[one])}, end expected ${clock.near(end[one], start[one])}`
        : `ran ${duration(end[one] - start[one])}, ${clock.words(start[one])} to ${clock.near(end[one], start[one])}`,
    ];
    const words = this.data.states?.[state?.[one]];
    const more = [
      words,
      queue?.[one] ? `queue ${this.data.queues?.[queue[one]] ?? queue[one]}` : "",
    ].filter(Boolean);
    if (more.length) lines.push(more.join(", "));
    return lines;
  }

  hitDensity(x, y) {
    const { edges, users, share, size } = this.heat;
    const row = users.length - 1 - Math.floor(y);
    const bin = binOf(edges, x);
    if (row < 0 || row >= users.length || bin < 0) return null;
    const words = [
      users[row] < 0 ? "All other users" : this.app.whoWords(users[row], true),
      `${(100 * share[row * size + bin]).toFixed(1)} % of the machine`,
      `${this.app.clock.words(edges[bin])} to ${this.app.clock.near(edges[bin + 1], edges[bin])}`,
    ];
    return users[row] < 0 ? { words } : { words, key: row, user: users[row] };
  }

  click(hit) {
    if (!hit || hit.key === undefined) this.app.choose({ job: null, user: null });
    else if (hit.user !== undefined) this.app.choose({ job: null, user: hit.user });
    else this.app.choose({ job: this.jobs.job[hit.key], user: this.jobs.user[hit.key] });
  }

  /** Choose the job that started before or after the chosen one. */
  walk(by) {
    if (!this.data || !this.jobs.job.length) return;
    const { job, user, start, end } = this.jobs;
    const { xRange } = this.chart;
    const order = [...job.keys()]
      .filter((one) => end[one] > xRange.start && start[one] < xRange.end)
      .sort((one, other) => start[one] - start[other]);
    if (!order.length) return;
    const place = order.findIndex((one) => job[one] === this.app.state.job);
    const next = order[place < 0 ? order.length - 1 : Math.min(Math.max(place + by, 0), order.length - 1)];
    this.app.choose({ job: job[next], user: user[next] });
    this.app.say(this.wordsOf(next).join(", "));
  }

  /** Show what is chosen without new data. */
  chosen(context) {
    this.blockers = context?.blockers ?? null;
    if (!this.data) return;
    this.paint();
    this.settled();
  }
}
