/**
 * Common parts of charts: Bokeh draws, this module handles time axes, pointer, keyboard and tooltips.
 *
 * A figure is made once; later only its data, ranges and ticks change. Bokeh has no tools here: a transparent element
 * above the canvas takes all events, so that mouse, touch and keyboard do the same in every chart.
 */

import { charts, timeAxis } from "./axis.js";
import { el, setAttribute } from "./dom.js";
import { lighten } from "./lighter.js";
import { theme } from "./palette.js";
import { showTip } from "./tip.js";

/** Width left of the frame, px: the same in all charts, so that their time axes are aligned. */
const LEFT = 62;

/** Height below the frame, px: for two lines of words, or without words. */
const below = (labels) => (labels === false ? 6 : Math.round(2.4 * parseFloat(fontSize())) + 12);

/** How much higher than planned charts are: more in high windows. */
const scale = () => Math.min(2, Math.max(0.85, innerHeight / 1000));

/** The size of words in charts: smaller than those of the page. */
const fontSize = () => `${Math.round(0.79 * parseFloat(getComputedStyle(document.documentElement).fontSize))}px`;

/** As many ticks as there is room for. */
const widths = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const chart = [...charts].find((one) => one.element === target);
    if (!chart || !contentRect.width) continue;
    chart.width = contentRect.width;
    chart.followTime();
  }
});

/** Charts that are not in view are painted when they come into view. */
const watch = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const chart = [...charts].find((one) => one.element === target);
      if (!chart?.view?.pause || isIntersecting === !chart.paused) continue;
      chart.paused = !isIntersecting;
      if (isIntersecting) chart.view.unpause();
      else chart.view.pause();
    }
  },
  { rootMargin: "120px" },
);

/** Paint what is not in view too, when there is time: for printing, and for scrolling without a flash. */
export function paintHidden() {
  for (const chart of charts) {
    if (!chart.paused || !chart.element.offsetParent) continue;
    chart.view.unpause();
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        if (chart.paused) chart.view.pause();
      }),
    );
  }
}

/** A chart: a Bokeh figure and an element that takes its events. */
export class Chart {
  /**
   * @param {Object} options
   * @param {number} options.height px
   * @param {boolean} [options.time] whether the x axis is the linked time axis
   * @param {boolean} [options.labels] whether the x axis has labels
   * @param {boolean} [options.panY] whether dragging also moves the y axis
   * @param {string} [options.xType] "log" for a logarithmic x and y axis
   * @param {function(number, number, Object): ?{words: string[], key: *}} [options.hit] what is at a point of the data
   * @param {function(Object): void} [options.click] called with what `hit` found, or null
   * @param {function(): string} [options.words] text alternative
   */
  constructor(options) {
    this.options = options;
    this.time = options.time ?? false;
    this.paused = false;
    this.sources = {};
    this.coloured = [];
    this.target = el("div", { class: "canvas" });
    this.glass = el("div", {
      class: "glass",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "chart",
      "aria-label": "Chart",
    });
    this.element = el("div", { class: "chart" }, this.target, this.glass);
    this.height = Math.round(options.height * scale());
    this.element.style.height = `${this.height}px`;
    this.build();
    this.listen();
    charts.add(this);
  }

  build() {
    const { Plotting, Range1d, FixedTicker, Span, NumeralTickFormatter } = Bokeh;
    this.xRange = new Range1d({ start: this.time ? timeAxis.from : 0, end: this.time ? timeAxis.to : 1 });
    this.yRange = new Range1d({ start: 0, end: 1 });
    const logarithmic = this.options.xType === "log";
    this.figure = Plotting.figure({
      height: this.height,
      sizing_mode: "stretch_width",
      output_backend: "canvas",
      tools: [],
      toolbar_location: null,
      x_range: this.xRange,
      y_range: this.yRange,
      x_axis_type: logarithmic ? "log" : "linear",
      y_axis_type: logarithmic ? "log" : "linear",
      min_border_left: LEFT,
      min_border_right: 10,
      min_border_top: 4,
      min_border_bottom: below(this.options.labels),
      background_fill_color: null,
      border_fill_color: null,
      outline_line_color: null,
      lod_threshold: null,
    });
    [this.xAxis] = this.figure.below;
    [this.yAxis] = this.figure.left;
    this.xTicker = new FixedTicker({ ticks: [] });
    this.xAxis.ticker = this.xTicker;
    for (const grid of this.figure.center) if (grid.dimension === 0) grid.ticker = this.xTicker;
    if (this.options.labels === false) this.xAxis.visible = false;
    if (this.options.yTicks) this.yAxis.ticker.desired_num_ticks = this.options.yTicks;
    const font = getComputedStyle(document.body).fontFamily;
    for (const axis of [this.xAxis, this.yAxis]) {
      axis.minor_tick_line_color = null;
      axis.major_tick_in = 0;
      axis.major_tick_out = 4;
      axis.major_label_text_font = font;
      axis.axis_line_color = null;
    }
    if (!logarithmic) this.yAxis.formatter = new NumeralTickFormatter({ format: "0,0.[00]" });
    if (this.time) {
      this.nowLine = new Span({ location: timeAxis.now ?? -1e15, dimension: "height", line_width: 1.5 });
      this.figure.add_layout(this.nowLine);
    }
    this.recolour();
    this.fit();
    if (this.time) this.followTime();
    this.shown = Bokeh.Plotting.show(this.figure, this.target).then((view) => {
      this.view = view;
      lighten(view, () => below(this.options.labels));
      this.followTime();
      watch.observe(this.element);
      widths.observe(this.element);
    });
  }

  /** Add data and return its source. */
  source(name, columns) {
    this.sources[name] = new Bokeh.ColumnDataSource({ data: Object.fromEntries(columns.map((column) => [column, []])) });
    return this.sources[name];
  }

  /** Set colours of glyphs or other models now and whenever the theme changes. */
  colour(action) {
    this.coloured.push(action);
    action(theme());
  }

  recolour() {
    const colours = theme();
    for (const axis of [this.xAxis, this.yAxis]) {
      axis.major_label_text_color = colours.soft;
      axis.major_tick_line_color = colours.line;
    }
    for (const grid of this.figure.center) grid.grid_line_color = colours.grid;
    if (this.nowLine) this.nowLine.line_color = colours.now;
    for (const action of this.coloured) action(colours);
  }

  /** Follow the linked time axis. */
  followTime() {
    if (!this.time) return;
    if (this.xRange.start !== timeAxis.from || this.xRange.end !== timeAxis.to)
      this.xRange.setv({ start: timeAxis.from, end: timeAxis.to });
    if (!timeAxis.clock) return;
    // The frame of Bokeh follows the element late: when a second run comes, it is still wide.
    const width = this.width ? this.width - LEFT - 10 : this.frame().width;
    const ticks = timeAxis.clock.ticks(timeAxis.from, timeAxis.to, Math.max(2, width / 84));
    this.setTicks(this.xAxis, this.xTicker, ticks);
  }

  /** Put ticks with words on an axis. */
  setTicks(axis, ticker, ticks) {
    const key = ticks.map((tick) => `${tick.at}:${tick.text}`).join("|");
    if (axis.hpcrowdTicks === key) return;
    axis.hpcrowdTicks = key;
    axis.hpcrowdWords = new Map(ticks.map((tick) => [tick.at, tick.text]));
    if (!axis.hpcrowdFormatter) {
      // Bokeh makes a view for each entry of `major_label_overrides`, which is slow; words from a map are not.
      axis.hpcrowdFormatter = new Bokeh.BasicTickFormatter();
      axis.hpcrowdFormatter.doFormat = (places) => Array.from(places, (at) => axis.hpcrowdWords.get(at) ?? "");
    }
    if (axis.formatter !== axis.hpcrowdFormatter) axis.formatter = axis.hpcrowdFormatter;
    ticker.ticks = ticks.map((tick) => tick.at);
  }

  /** Put words on the y axis. */
  setYTicks(ticks) {
    this.plain ??= [this.yAxis.ticker, this.yAxis.formatter];
    this.yTicker ??= new Bokeh.FixedTicker({ ticks: [] });
    this.useYTicker(this.yTicker);
    this.setTicks(this.yAxis, this.yTicker, ticks);
  }

  /** Put numbers on the y axis again. */
  plainY() {
    if (!this.plain) return;
    this.useYTicker(this.plain[0]);
    [, this.yAxis.formatter] = this.plain;
    this.yAxis.hpcrowdTicks = null;
  }

  useYTicker(ticker) {
    if (this.yAxis.ticker === ticker) return;
    this.yAxis.ticker = ticker;
    for (const grid of this.figure.center) if (grid.dimension === 1) grid.ticker = ticker;
  }

  setX(start, end) {
    if (this.xRange.start !== start || this.xRange.end !== end) this.xRange.setv({ start, end });
  }

  setY(start, end) {
    if (this.yRange.start !== start || this.yRange.end !== end) this.yRange.setv({ start, end });
  }

  /** The frame in px of the element. */
  frame() {
    const box = this.view?.frame?.bbox ?? this.view?.frame_view?.bbox;
    if (box && box.width > 1) return { left: box.left, top: box.top, width: box.width, height: box.height };
    const width = this.element.clientWidth || 600;
    return { left: LEFT, top: 5, width: Math.max(50, width - LEFT - 10), height: Math.max(20, this.height - 40) };
  }

  /** The data coordinates at a point of the element, and how much data a pixel is. */
  dataAt(x, y) {
    const frame = this.frame();
    const place = (range, share) => {
      if (this.options.xType !== "log") return range.start + share * (range.end - range.start);
      return 10 ** (Math.log10(range.start) + share * (Math.log10(range.end) - Math.log10(range.start)));
    };
    return {
      x: place(this.xRange, (x - frame.left) / frame.width),
      y: place(this.yRange, 1 - (y - frame.top) / frame.height),
      perX: (this.xRange.end - this.xRange.start) / frame.width,
      perY: (this.yRange.end - this.yRange.start) / frame.height,
      inside: x >= frame.left - 2 && x <= frame.left + frame.width + 2,
    };
  }

  hitAt(event) {
    if (!this.options.hit) return null;
    const box = this.glass.getBoundingClientRect();
    const at = this.dataAt(event.clientX - box.left, event.clientY - box.top);
    return at.inside ? this.options.hit(at.x, at.y, at) : null;
  }

  listen() {
    const { glass } = this;
    const pointers = new Map();
    let moved = 0;
    let spread = 0;
    glass.addEventListener("pointerdown", (event) => {
      glass.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      if (pointers.size === 1) moved = 0;
      spread = 0;
    });
    glass.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) {
        const hit = this.hitAt(event);
        glass.classList.toggle("can-click", Boolean(hit && this.options.click && hit.key !== undefined));
        showTip(hit?.words, event.clientX, event.clientY);
        return;
      }
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      if (pointers.size === 2) {
        const [one, other] = [...pointers.values()];
        const now = Math.abs(one[0] - other[0]);
        if (spread > 20 && now > 20) this.zoom(spread / now, (one[0] + other[0]) / 2);
        spread = now;
        moved = 99;
        return;
      }
      moved += Math.abs(event.clientX - before[0]) + Math.abs(event.clientY - before[1]);
      if (moved < 5) return;
      showTip(null);
      glass.classList.add("dragging");
      this.pan(before[0] - event.clientX, before[1] - event.clientY);
    });
    const up = (event) => {
      if (!pointers.delete(event.pointerId)) return;
      glass.classList.remove("dragging");
      if (event.type === "pointerup" && moved < 5 && this.options.click) this.options.click(this.hitAt(event), event);
    };
    glass.addEventListener("pointerup", up);
    glass.addEventListener("pointercancel", up);
    glass.addEventListener("pointerleave", () => showTip(null));
    glass.addEventListener("dblclick", () => this.reset());
    glass.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    glass.addEventListener("keydown", (event) => this.key(event));
  }

  /** Pan by a number of px. */
  pan(right, down) {
    const frame = this.frame();
    if (this.time && right) {
      const by = (right / frame.width) * (timeAxis.to - timeAxis.from);
      timeAxis.move(timeAxis.from + by, timeAxis.to + by);
    }
    if (this.options.panY && down) {
      const by = (down / frame.height) * (this.yRange.end - this.yRange.start);
      this.moveY(this.yRange.start - by, this.yRange.end - by);
    }
  }

  /** Move the y axis by hand; the chart may limit it. */
  moveY(start, end) {
    this.movedY = true;
    this.setY(start, end);
    this.options.onMoveY?.(start, end);
  }

  /** Zoom the time axis around a point of the window. */
  zoom(factor, clientX = null) {
    if (!this.time) return;
    const frame = this.frame();
    const box = this.glass.getBoundingClientRect();
    const share = clientX === null ? 0.5 : Math.min(1, Math.max(0, (clientX - box.left - frame.left) / frame.width));
    const length = timeAxis.to - timeAxis.from;
    const fixed = timeAxis.from + share * length;
    timeAxis.move(fixed - share * length * factor, fixed + (1 - share) * length * factor);
  }

  zoomY(factor, clientY = null) {
    const frame = this.frame();
    const box = this.glass.getBoundingClientRect();
    const share = clientY === null ? 0.5 : 1 - (clientY - box.top - frame.top) / frame.height;
    const length = this.yRange.end - this.yRange.start;
    const fixed = this.yRange.start + share * length;
    this.moveY(fixed - share * length * factor, fixed + (1 - share) * length * factor);
  }

  wheel(event) {
    if (!this.time && !this.options.panY) return;
    event.preventDefault();
    showTip(null);
    const size = event.deltaMode === 1 ? 30 : 1;
    if (event.shiftKey && this.options.panY) this.zoomY(Math.exp((event.deltaY || event.deltaX) * size * 0.0015), event.clientY);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
      this.pan((event.deltaX || event.deltaY) * size, 0);
    else this.zoom(Math.exp(event.deltaY * size * 0.0015), event.clientX);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { width, height } = this.frame();
    const actions = {
      ArrowLeft: () => this.pan(-0.15 * width, 0),
      ArrowRight: () => this.pan(0.15 * width, 0),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      0: () => this.reset(),
    };
    if (this.options.panY) {
      actions.ArrowUp = () => this.pan(0, -0.15 * height);
      actions.ArrowDown = () => this.pan(0, 0.15 * height);
    }
    if (!actions[event.key] || (!this.time && !this.options.panY)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  reset() {
    this.movedY = false;
    this.options.onReset?.();
    if (this.time) timeAxis.onReset?.();
  }

  /** Write the text alternative. */
  describe(words) {
    setAttribute(this.glass, "aria-label", words);
  }

  /** Fit the height and the words to the window. */
  fit() {
    const height = Math.round(this.options.height * scale());
    if (height !== this.height) {
      this.height = height;
      this.element.style.height = `${height}px`;
      this.figure.height = height;
    }
    const size = fontSize();
    if (size !== this.size) {
      this.size = size;
      for (const axis of [this.xAxis, this.yAxis]) axis.major_label_text_font_size = size;
    }
    this.followTime();
  }

  remove() {
    charts.delete(this);
    watch.unobserve(this.element);
    widths.unobserve(this.element);
    this.view?.remove?.();
    this.element.remove();
  }
}

/** Colour all charts again after a change of the theme. */
export function recolourCharts() {
  for (const chart of charts) chart.recolour();
}

/** Heights depend on the window, ticks on the width. */
export function chartsResized() {
  for (const chart of charts) chart.fit();
}
