/** The whole run under the bar: load, queue, outages, what is visible, where we are. */

import { el, setAttribute } from "./dom.js";
import { unpack } from "./connection.js";
import { theme } from "./palette.js";

/** Height with one run and with two, px. */
const HEIGHTS = [62, 92];

/** Part of the height that the load takes; the rest is the queue. */
const LOAD_SHARE = 0.58;

export class Timeline {
  /**
   * @param {Object} app the page
   * @param {HTMLElement} place
   */
  constructor(app, place) {
    this.app = app;
    this.runs = [];
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 60,
      value: 0,
      "aria-label": "Time in the whole run",
      class: "timerange",
    });
    this.ticks = el("div", { class: "ticks", "aria-hidden": "true" });
    place.append(el("h2", { class: "hidden", text: "The whole run" }), this.canvas, this.slider, this.ticks);
    this.slider.addEventListener("input", () => app.goTo(Number(this.slider.value)));
    this.slider.addEventListener("keydown", (event) => event.stopPropagation());
    const drag = (event) => {
      if (event.buttons !== 1) return;
      const box = this.canvas.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      app.goTo(Math.round(this.first + share * (this.last - this.first)));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      event.preventDefault();
      drag(event);
    });
    this.canvas.addEventListener("pointermove", drag);
    new ResizeObserver(() => this.resized()).observe(this.canvas);
  }

  get first() {
    return Math.min(...this.known.map((run) => run.first));
  }

  get last() {
    return Math.max(...this.known.map((run) => run.last));
  }

  get known() {
    return this.runs.filter(Boolean);
  }

  /** Forget runs beyond a number. */
  keep(size) {
    this.runs.length = Math.min(this.runs.length, size);
    this.drawBack();
  }

  /** Take a timeline that the server pushed. */
  take(message) {
    this.runs[message.run] = {
      ...message,
      edges: unpack(message.edges),
      in_use: unpack(message.in_use),
      waiting: unpack(message.waiting),
      size: unpack(message.size),
    };
    this.slider.min = this.first;
    this.slider.max = this.last;
    this.drawBack();
  }

  resized() {
    this.drawBack();
  }

  x(second) {
    return ((second - this.first) / Math.max(1, this.last - this.first)) * this.width;
  }

  /** Draw what does not change while time passes, and keep it. */
  drawBack() {
    const width = this.canvas.clientWidth;
    if (!width || !this.known.length) return;
    const scale = window.devicePixelRatio || 1;
    this.height = HEIGHTS[this.known.length - 1] ?? HEIGHTS[1];
    this.canvas.style.height = `${this.height}px`;
    this.width = width;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.back = document.createElement("canvas");
    this.back.width = this.canvas.width;
    this.back.height = this.canvas.height;
    const pen = this.back.getContext("2d");
    pen.scale(scale, scale);
    const rows = this.known.length;
    this.known.forEach((run, row) => this.drawRun(pen, run, (row * this.height) / rows, this.height / rows, rows > 1));
    this.scale = scale;
    this.draw();
    this.drawTicks();
  }

  drawRun(pen, run, top, height, named) {
    const colours = theme();
    const load = Math.floor(height * LOAD_SHARE);
    const most = (values) => values.reduce((found, value) => (value > found ? value : found), 1);
    const until = run.done ? run.last : run.until;
    const fill = (values, largest, base, room, colour) => {
      pen.fillStyle = colour;
      pen.beginPath();
      for (let bin = 0; bin < values.length; bin++) {
        if (!(values[bin] > 0) || run.edges[bin] >= until) continue;
        const left = this.x(run.edges[bin]);
        const tall = Math.min(1, values[bin] / largest) * room;
        pen.rect(left, base - tall, this.x(run.edges[bin + 1]) - left + 0.4, tall);
      }
      pen.fill();
    };
    pen.fillStyle = colours.warn;
    pen.globalAlpha = 0.3;
    for (const [begin, end] of run.outages ?? [])
      pen.fillRect(this.x(begin), top, Math.max(1.5, this.x(end) - this.x(begin)), height);
    pen.globalAlpha = 1;
    fill(run.in_use, most(run.size), top + load, load - 3, colours.use);
    fill(run.waiting, most(run.waiting), top + height - 1, height - load - 3, colours.queue);
    if (until < run.last) {
      const left = this.x(until);
      pen.save();
      pen.beginPath();
      pen.rect(left, top, this.width - left, height);
      pen.clip();
      pen.strokeStyle = colours.line;
      pen.beginPath();
      for (let x = left - height; x < this.width; x += 7) {
        pen.moveTo(x, top + height);
        pen.lineTo(x + height, top);
      }
      pen.stroke();
      pen.restore();
    }
    if (named) {
      pen.font = `600 11px ${getComputedStyle(document.body).fontFamily}`;
      pen.fillStyle = colours.ink;
      pen.strokeStyle = colours.surface;
      pen.lineWidth = 3;
      const name = "AB"[run.run];
      pen.strokeText(name, 4, top + 12);
      pen.fillText(name, 4, top + 12);
    }
  }

  /** Draw again: the time or the visible range has changed. */
  draw() {
    if (!this.back) return;
    const { at, from, to } = this.app.position;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.scale(this.scale, this.scale);
    const colours = theme();
    const left = Math.max(0, this.x(from));
    const right = Math.min(this.width, this.x(to));
    pen.fillStyle = colours.accent;
    pen.globalAlpha = 0.14;
    pen.fillRect(left, 0, Math.max(2, right - left), this.height);
    pen.globalAlpha = 1;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.back, 0, 0);
    pen.scale(this.scale, this.scale);
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, 0.5, Math.max(1, right - left - 1), this.height - 1);
    const x = this.x(at);
    pen.fillStyle = colours.now;
    pen.fillRect(x - 1, 0, 2, this.height);
    pen.beginPath();
    pen.moveTo(x - 6, 0);
    pen.lineTo(x + 6, 0);
    pen.lineTo(x, 8);
    pen.fill();
    if (document.activeElement !== this.slider || Number(this.slider.value) !== at) this.slider.value = at;
    if (!this.app.playing) setAttribute(this.slider, "aria-valuetext", this.app.clock.words(at));
  }

  drawTicks() {
    const ticks = this.app.clock.ticks(this.first, this.last, this.width / 75);
    const key = ticks.map((tick) => tick.text + tick.at).join() + this.width;
    if (key === this.ticksKey) return;
    this.ticksKey = key;
    const nodes = ticks.map((tick) => {
      const node = el("span", { text: tick.text.replace("\n", " ") });
      const x = this.x(tick.at);
      if (x < 60) node.style.left = "0";
      else if (x > this.width - 60) node.style.right = "0";
      else {
        node.style.left = `${x}px`;
        node.style.transform = "translateX(-50%)";
      }
      return node;
    });
    this.ticks.replaceChildren(...nodes);
    // Of two that overlap, the one with the date stays.
    const boxes = nodes.map((node) => node.getBoundingClientRect());
    let kept = 0;
    for (let place = 1; place < nodes.length; place++) {
      let gone = -1;
      if (boxes[place].left < boxes[kept].right + 4) {
        gone = place > 1 && nodes[place].textContent.length > nodes[kept].textContent.length ? kept : place;
        nodes[gone].remove();
      }
      if (gone !== place) kept = place;
    }
  }
}
