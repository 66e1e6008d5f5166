/** The bar: run names, clock, buttons that move time, speed, theme, help. */

import { button, el, setAttribute, setHidden, setText } from "./dom.js";
import { DAY, HOUR, WEEK, duration } from "./clock.js";

/** Slowest and fastest simulated time per picture, s. */
const SLOWEST = 60;
const FASTEST = WEEK;

/** Keys and what they do, for the dialog. */
const KEYS = [
  ["Space or K", "play or pause"],
  ["\u2190 \u2192", "an hour back, an hour on"],
  ["Shift + \u2190 \u2192", "a day back, a day on"],
  ["Home, End", "to the start, to the end"],
  ["B", "to the busiest hour"],
  ["N", "to the next event of the chosen user"],
  ["1 ... 6", "the tabs"],
  ["In a picture: \u2190 \u2192, + \u2212, 0", "move, zoom, show all again"],
  ["In a table: \u2191 \u2193, Enter", "move, choose"],
  ["In a picture: [ and ]", "choose the job or session before or after"],
  ["Esc", "choose nothing"],
  ["?", "this list"],
];

/** Speeds that the slider rounds to, s. */
const SPEEDS = [60, 120, 300, 600, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 3 * DAY, WEEK];

export class Transport {
  constructor(app, place) {
    this.app = app;
    this.name = el("h1", { text: "hpcrowd" });
    this.clock = el("output", { class: "clock", id: "clock", "aria-live": "off" });
    this.progress = el("span", { class: "progress", role: "status" });
    this.stop = button("Stop", () => app.halt(), {
      class: "quiet",
      hidden: true,
      title: "Stop simulating and show where it got to",
    });
    this.play = button("Play", () => app.togglePlay(), { class: "primary", id: "play", title: "Play or pause (space)" });
    const icon = (sign, words, action, key) =>
      button("", action, { "aria-label": words, title: key ? `${words} (${key})` : words, class: "icon", data: { sign } });
    this.start = icon("Start", "To the start", () => app.goTo(app.first), "Home");
    this.backDay = icon("\u2212 day", "A day back", () => app.step(-DAY), "Shift + left");
    this.backHour = icon("\u2212 hour", "An hour back", () => app.step(-HOUR), "left");
    this.onHour = icon("+ hour", "An hour on", () => app.step(HOUR), "right");
    this.onDay = icon("+ day", "A day on", () => app.step(DAY), "Shift + right");
    this.end = icon("End", "To the end", () => app.goToEnd(), "End");
    this.busiest = button("Busiest hour", () => app.goToBusiest(), { title: "Where the queue is longest (B)" });
    this.event = button("Next event", () => app.goToEvent(), {
      title: "Until the chosen user submits, or a job of theirs starts or ends (N)",
    });
    this.date = el("input", { "aria-label": "Go to local time", class: "date", type: "datetime-local", step: "1" });
    this.date.addEventListener("change", () => this.goToDate());
    this.date.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.goToDate();
    });
    this.speed = el("input", {
      type: "range",
      min: "0",
      max: String(SPEEDS.length - 1),
      step: "1",
      id: "speed",
      "aria-label": "Speed: simulated time per picture",
    });
    this.speedWords = el("output", { for: "speed", class: "speedwords" });
    this.speed.addEventListener("input", () => app.setSpeed(SPEEDS[Number(this.speed.value)]));
    this.second = button("Second run", () => app.toggleSecond(), {
      title: "Show a second run beside the first, with other settings",
    });
    this.reset = button("Reset", () => app.reset(), { title: "Read the files again and start anew" });
    this.link = button("Copy link", () => this.copyLink(), { title: "Copy the address of this view" });
    this.theme = el(
      "select",
      { "aria-label": "Theme" },
      ...[
        ["auto", "Auto"],
        ["light", "Light"],
        ["dark", "Dark"],
      ].map(([value, text]) => el("option", { value, text })),
    );
    this.theme.addEventListener("change", () => app.setTheme(this.theme.value));
    this.help = button("?", () => this.showHelp(), { "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)" });
    this.dialog = this.makeHelp();
    place.append(
      el("div", { class: "names" }, this.name, this.clock, this.progress, this.stop),
      el(
        "div",
        { class: "others", role: "group", "aria-label": "Page" },
        this.second,
        this.reset,
        this.link,
        this.theme,
        this.help,
      ),
      el(
        "div",
        { class: "moves", role: "group", "aria-label": "Move through time" },
        el("span", { class: "joined" }, this.start, this.backDay, this.backHour, this.play, this.onHour, this.onDay, this.end),
        el("span", { class: "joined" }, this.busiest, this.event),
        this.date,
        el("label", { class: "speed" }, el("span", { text: "Speed" }), this.speed, this.speedWords),
      ),
      this.dialog,
    );
    for (const one of place.querySelectorAll(".icon")) one.append(el("span", { "aria-hidden": "true", text: one.dataset.sign }));
  }

  makeHelp() {
    const rows = KEYS.map(([keys, words]) => el("tr", {}, el("th", { scope: "row", text: keys }), el("td", { text: words })));
    const dialog = el(
      "dialog",
      { "aria-labelledby": "help-title", class: "help" },
      el("h2", { id: "help-title", text: "Keyboard shortcuts" }),
      el("table", {}, el("tbody", {}, ...rows)),
      el("form", { method: "dialog" }, el("button", { text: "Close", class: "primary" })),
    );
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    return dialog;
  }

  showHelp() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  goToDate() {
    const second = this.app.clock.secondOfField(this.date.value);
    const wrong = second === null;
    this.date.setCustomValidity(wrong ? "A second of the run, or for example: 3 days, week 2 Tue 14:00" : "");
    if (wrong) {
      if (this.date.value) this.date.reportValidity();
      return;
    }
    if (Math.round(second) !== this.app.position.at) this.app.goTo(Math.round(second));
  }

  async copyLink() {
    const { href } = location;
    try {
      await navigator.clipboard.writeText(href);
      setText(this.link, "Copied");
    } catch {
      window.prompt("Address of this view", href);
    }
    setTimeout(() => setText(this.link, "Copy link"), 1500);
  }

  /** Show a new position. */
  draw() {
    const { app } = this;
    const { at } = app.position;
    const { clock } = app;
    setText(
      this.clock,
      at === null
        ? ""
        : `${clock.words(at, true)}${clock.zone && !clock.nominal ? ` ${clock.zone}` : ""}${app.over ? ", finished" : ""}`,
    );
    if (document.activeElement !== this.date && at !== null) {
      const type = clock.nominal ? "text" : "datetime-local";
      if (this.date.type !== type) this.date.type = type;
      const value = clock.nominal ? clock.words(at, true) : clock.field(at);
      if (this.date.value !== value) this.date.value = value;
    }
    this.controls();
  }

  /** Show which buttons are possible and what they say. */
  controls() {
    const { app } = this;
    const { at } = app.position;
    setText(this.play, app.playing ? "Pause" : "Play");
    this.play.disabled = app.over && !app.playing;
    for (const one of [this.start, this.backDay, this.backHour]) one.disabled = at !== null && at <= app.first;
    for (const one of [this.onHour, this.onDay, this.end]) one.disabled = app.over;
    const { user } = app.state;
    this.event.disabled = user === null || app.over;
    setText(this.event, user === null ? "Next event" : `Next event of ${app.whoWords(user)}`);
    setText(this.second, app.two ? "One run" : "Second run");
    setHidden(this.second, app.subjects > 1);
    const place = SPEEDS.findIndex((speed) => speed >= app.state.speed);
    this.speed.value = String(place < 0 ? SPEEDS.length - 1 : place);
    const words = speedWords(app.state.speed);
    setText(this.speedWords, words);
    setAttribute(this.speed, "aria-valuetext", `${words} per picture`);
    if (this.theme.value !== app.state.theme) this.theme.value = app.state.theme;
  }

  /** What the server is doing. */
  showProgress(text) {
    setText(this.progress, text);
    setHidden(this.stop, !text);
  }
}

/** A speed in words: "15 min", "1 h", "1 week". */
function speedWords(seconds) {
  if (seconds >= WEEK) return "1 week";
  if (seconds >= DAY) return seconds === DAY ? "1 day" : `${seconds / DAY} days`;
  if (seconds >= HOUR) return `${seconds / HOUR} h`;
  return seconds >= SLOWEST && seconds < FASTEST ? `${seconds / 60} min` : duration(seconds);
}
