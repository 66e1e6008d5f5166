/** The dependency graph of a user: time from left to right, lanes from top to bottom. */

import { Chart } from "./charts.js";
import { duration, plural } from "./clock.js";
import { unpack } from "./connection.js";
import { el, setHidden } from "./dom.js";
import { inkOn } from "./palette.js";
import { Panel } from "./panel.js";

/** Letter and colour of each state: finished, running, queued, free, waits for others. */
const LETTERS = ["F", "R", "Q", "T", "W"];
const COLOURS = ["#8d98a5", "#2f7fc1", "#d55e00", "#2a9d6f", "#e0a100"];
const WORDS = ["finished", "running", "in the queue", "free: think time passes", "waits for others"];

/** Half the height of a box, in lanes. */
const HALF = 0.36;

/** How far an edge bends around boxes between its ends, in lanes: into the gap between two lanes. */
const BEND = (4 / 3) * 0.48;

/** Parts of an edge that are looked at to find what the pointer is on. */
const PARTS = 24;

/** Lanes shown at least. */
const FEWEST = 6;

export class GraphPanel extends Panel {
  constructor(app, run) {
    super(app, run, {
      name: "user",
      title: "Dependency graph",
      kinds: ["csv", "svg", "png"],
      wide: true,
      id: `graph-${"ab"[run]}`,
      saves: "graph",
    });
    this.chart = new Chart({
      height: 330,
      time: true,
      panY: true,
      hit: (x, y, at) => this.hit(x, y, at),
      click: (hit) => app.chooseUnit(hit?.key ?? null),
      onReset: () => this.fit(true),
    });
    const { figure } = this.chart;
    const edges = this.chart.source("edges", ["x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1"]);
    const curves = (source, width) =>
      figure.bezier({
        x0: { field: "x0" },
        y0: { field: "y0" },
        x1: { field: "x1" },
        y1: { field: "y1" },
        cx0: { field: "cx0" },
        cy0: { field: "cy0" },
        cx1: { field: "cx1" },
        cy1: { field: "cy1" },
        source,
        line_width: width,
      });
    const arrows = (source, size) =>
      figure.scatter({
        x: { field: "x1" },
        y: { field: "y1" },
        source,
        marker: "triangle",
        size,
        angle: -Math.PI / 2,
        line_color: null,
      });
    this.lines = curves(edges, 1);
    this.heads = arrows(edges, 5);
    const boxes = this.chart.source("boxes", ["x0", "x1", "bottom", "top", "colour"]);
    this.boxes = figure.quad({
      left: { field: "x0" },
      right: { field: "x1" },
      bottom: { field: "bottom" },
      top: { field: "top" },
      source: boxes,
      fill_color: { field: "colour" },
      line_color: { field: "colour" },
      line_width: 1.5,
    });
    const own = this.chart.source("own", ["x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1"]);
    this.ownLines = curves(own, 2.5);
    this.ownHeads = arrows(own, 9);
    const chosen = this.chart.source("chosen", ["x0", "x1", "bottom", "top"]);
    this.chosenBox = figure.quad({
      left: { field: "x0" },
      right: { field: "x1" },
      bottom: { field: "bottom" },
      top: { field: "top" },
      source: chosen,
      fill_color: null,
      line_width: 3,
    });
    this.letters = figure.text({
      x: { field: "x" },
      y: { field: "y" },
      text: { field: "text" },
      source: this.chart.source("letters", ["x", "y", "text", "ink"]),
      text_color: { field: "ink" },
      text_font_size: "10px",
      text_font_style: "bold",
      text_align: "center",
      text_baseline: "middle",
    });
    this.chart.colour((colours) => {
      this.lines.glyph.line_color = colours.edge ?? colours.recorded;
      this.heads.glyph.fill_color = colours.edge ?? colours.recorded;
      for (const one of [this.ownLines, this.chosenBox]) one.glyph.line_color = colours.ink;
      this.ownHeads.glyph.fill_color = colours.ink;
    });
    this.chart.yAxis.visible = false;
    this.chart.glass.addEventListener("keydown", (event) => {
      if (event.key === "[" || event.key === "]") this.walk(event.key === "]" ? 1 : -1);
    });
    this.legend = el("p", { class: "caption states" });
    this.body.append(this.legend, this.chart.element);
  }

  draw(data, context) {
    this.data = data.graph;
    setHidden(this.chart.element, !this.data);
    if (!this.data) {
      this.setAbout("No graph.");
      return;
    }
    const { data: graph } = this;
    this.unit = graph.kind === "batch" ? "batch" : "session";
    for (const key of ["unit", "state", "jobs", "processors", "begin", "end", "lane", "x0", "x1", "before", "after", "think"])
      this[`${key}s`] = unpack(graph[key]);
    this.setTitle(`What ${this.app.whoWords(this.app.state.user)} waits for`);
    const shown = this.units.length;
    const counts = LETTERS.map((_, state) => this.states.filter((one) => one === state).length);
    this.setAbout(
      `${plural(graph.total ?? shown, this.unit)}${shown < (graph.total ?? shown) ? `, ${shown.toLocaleString("en-US")} of them here` : ""}, ${plural(this.befores.length, "dependency").replace("dependencys", "dependencies")}${graph.waits === false ? "; this user does not wait for them" : ""}`,
    );
    this.legend.replaceChildren(
      ...LETTERS.flatMap((letter, state) => {
        if (!counts[state]) return [];
        const swatch = el("span", { class: "letter", text: letter });
        swatch.style.background = COLOURS[state];
        swatch.style.color = inkOn(COLOURS[state]);
        return [el("span", { class: "step" }, swatch, `${WORDS[state]} ${counts[state].toLocaleString("en-US")}`)];
      }),
    );
    const bottoms = Float64Array.from(this.lanes, (lane) => -lane - HALF);
    const tops = Float64Array.from(this.lanes, (lane) => -lane + HALF);
    this.chart.sources.boxes.data = {
      x0: this.x0s,
      x1: this.x1s,
      bottom: bottoms,
      top: tops,
      colour: [...this.states].map((state) => COLOURS[state] ?? COLOURS[0]),
    };
    this.rankBoxes();
    // Of thousands, those within a lane that are shorter than a pixel cannot be seen.
    const { xRange } = this.chart;
    const pixel = (xRange.end - xRange.start) / this.chart.frame().width;
    const seen = (before, after) => this.x0s[after] - this.x1s[before] > pixel || this.lanes[before] !== this.lanes[after];
    this.chart.sources.edges.data = this.edges(seen);
    const user = this.app.state.user;
    this.fit(user !== this.user);
    this.user = user;
    this.mark();
    this.chart.describe(
      `Graph of ${plural(shown, this.unit)}: ${counts
        .map((size, state) => (size ? `${size} ${WORDS[state]}` : ""))
        .filter(Boolean)
        .join(", ")}. ${context.rangeWords} The keys [ and ] choose the ${this.unit} before or after.`,
    );
  }

  /** Number the boxes of each lane from left to right. */
  rankBoxes() {
    const order = [...this.units.keys()].sort((one, other) => this.x0s[one] - this.x0s[other]);
    const sizes = new Map();
    this.ranks = new Int32Array(order.length);
    for (const place of order) {
      const size = sizes.get(this.lanes[place]) ?? 0;
      this.ranks[place] = size;
      sizes.set(this.lanes[place], size + 1);
    }
  }

  /** The curve of an edge: along a lane it is straight, or bends around the boxes between. */
  curve(before, after) {
    const [x0, x1] = [this.x1s[before], this.x0s[after]];
    const [y0, y1] = [-this.lanes[before], -this.lanes[after]];
    if (y0 !== y1) return { x0, y0, x1, y1, cx0: (x0 + x1) / 2, cy0: y0, cx1: (x0 + x1) / 2, cy1: y1 };
    const bend = this.ranks[after] - this.ranks[before] > 1 ? BEND : 0;
    return { x0, y0, x1, y1, cx0: x0, cy0: y0 + bend, cx1: x1, cy1: y1 + bend };
  }

  edges(wanted) {
    const to = { x0: [], y0: [], x1: [], y1: [], cx0: [], cy0: [], cx1: [], cy1: [] };
    for (let place = 0; place < this.befores.length; place++) {
      const [before, after] = [this.befores[place], this.afters[place]];
      if (!wanted(before, after)) continue;
      for (const [key, value] of Object.entries(this.curve(before, after))) to[key].push(value);
    }
    return to;
  }

  /** Show the lanes in use, unless a person has moved them. */
  fit(anew) {
    if (anew) this.chart.movedY = false;
    if (this.chart.movedY || !this.units?.length) return;
    let [low, high] = [Infinity, -Infinity];
    for (let place = 0; place < this.lanes.length; place++) {
      if (this.x1s[place] < this.chart.xRange.start || this.x0s[place] > this.chart.xRange.end) continue;
      low = Math.min(low, this.lanes[place]);
      high = Math.max(high, this.lanes[place]);
    }
    if (low > high) [low, high] = [0, 0];
    const room = Math.max(0, FEWEST - (high - low + 1)) / 2;
    this.chart.setY(-high - 0.7 - room, -low + 0.7 + room);
  }

  /** Letters on boxes that are large enough; outline of the chosen unit and its dependencies. */
  mark() {
    if (!this.units) return;
    const frame = this.chart.frame();
    const { xRange, yRange } = this.chart;
    const perX = frame.width / (xRange.end - xRange.start);
    const perY = frame.height / (yRange.end - yRange.start);
    const letters = { x: [], y: [], text: [], ink: [] };
    if (2 * HALF * perY >= 10) {
      for (let place = 0; place < this.units.length && letters.x.length < 600; place++) {
        const left = Math.max(this.x0s[place], xRange.start);
        const right = Math.min(this.x1s[place], xRange.end);
        const width = (right - left) * perX;
        if (width < 10) continue;
        letters.x.push((left + right) / 2);
        letters.y.push(-this.lanes[place]);
        letters.ink.push(inkOn(COLOURS[this.states[place]] ?? COLOURS[0]));
        const letter = LETTERS[this.states[place]] ?? "";
        letters.text.push(width > 60 ? `${letter} ${this.units[place]}` : letter);
      }
    }
    this.chart.sources.letters.data = letters;
    const place = this.units.indexOf(this.app.unit);
    this.chart.sources.chosen.data =
      place < 0
        ? { x0: [], x1: [], bottom: [], top: [] }
        : { x0: [this.x0s[place]], x1: [this.x1s[place]], bottom: [-this.lanes[place] - HALF], top: [-this.lanes[place] + HALF] };
    this.chart.sources.own.data =
      this.edges((before, after) => place >= 0 && (before === place || after === place));
  }

  chosen() {
    this.mark();
  }

  /** Choose the unit before or after the chosen one. */
  walk(by) {
    if (!this.units?.length) return;
    const order = [...this.units.keys()].sort((one, other) => this.x0s[one] - this.x0s[other]);
    const now = this.app.now(this.run);
    let place = order.findIndex((one) => this.units[one] === this.app.unit);
    if (place < 0) place = Math.max(0, order.findIndex((one) => this.x1s[one] >= now) - by);
    const next = order[Math.min(Math.max(place + by, 0), order.length - 1)];
    this.app.chooseUnit(this.units[next]);
    this.app.say(this.wordsOf(next).join(", "));
  }

  hit(x, y, at) {
    if (!this.units) return null;
    for (let place = this.units.length - 1; place >= 0; place--) {
      if (Math.abs(-this.lanes[place] - y) > HALF + 2 * at.perY) continue;
      if (x < this.x0s[place] - 4 * at.perX || x > this.x1s[place] + 4 * at.perX) continue;
      return { key: this.units[place], words: this.wordsOf(place) };
    }
    return this.hitEdge(x, y, at);
  }

  hitEdge(x, y, at) {
    for (let place = 0; place < this.befores.length; place++) {
      const [before, after] = [this.befores[place], this.afters[place]];
      const [left, right] = [this.x1s[before], this.x0s[after]];
      if (x < Math.min(left, right) || x > Math.max(left, right)) continue;
      if (!isOnCurve(this.curve(before, after), x, y, at)) continue;
      return {
        key: this.units[after],
        words: [
          `${this.units[after]} waits for ${this.units[before]}`,
          this.thinks[place] === null ? "think time not known yet" : `think time ${duration(this.thinks[place])}`,
        ],
      };
    }
    return null;
  }

  wordsOf(place) {
    const { clock } = this.app;
    const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
    const [begin, end] = [this.begins[place], this.ends[place]];
    const waits = [];
    for (let edge = 0; edge < this.befores.length; edge++)
      if (this.afters[edge] === place)
        waits.push(`${this.units[this.befores[edge]]}${known(this.thinks[edge]) ? ` (${duration(this.thinks[edge])})` : ""}`);
    return [
      `${this.unit === "batch" ? "Batch" : "Session"} ${this.units[place]}: ${WORDS[this.states[place]] ?? ""}`,
      `${plural(this.jobss[place], "job")}, ${plural(this.processorss[place], "processor")}`,
      known(begin) ? `${clock.words(begin)}${known(end) ? ` to ${clock.near(end, begin)}` : ""}` : "not foreseen yet",
      waits.length ? `after ${waits.slice(0, 6).join(", ")}${waits.length > 6 ? " ..." : ""}` : "",
    ].filter(Boolean);
  }
}

/** Whether a point is on a curve, or at most five pixels from it. */
function isOnCurve({ x0, y0, x1, y1, cx0, cy0, cx1, cy1 }, x, y, at) {
  const between = (one, two, three, four, part) => {
    const rest = 1 - part;
    return rest ** 3 * one + 3 * rest * part * (rest * two + part * three) + part ** 3 * four;
  };
  for (let step = 0; step < PARTS; step++) {
    const [from, to] = [step / PARTS, (step + 1) / PARTS];
    const [left, right] = [between(x0, cx0, cx1, x1, from), between(x0, cx0, cx1, x1, to)];
    if (x < Math.min(left, right) || x > Math.max(left, right)) continue;
    const [low, high] = [between(y0, cy0, cy1, y1, from), between(y0, cy0, cy1, y1, to)];
    const share = right === left ? 0 : (x - left) / (right - left);
    const [least, most] = [Math.min(low, high), Math.max(low, high)];
    const line = right - left > at.perX ? low + share * (high - low) : Math.min(Math.max(y, least), most);
    if (Math.abs(line - y) <= 5 * at.perY) return true;
  }
  return false;
}
