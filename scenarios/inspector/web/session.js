/** The runs on the server: opening them, asking for data one request after the other, drawing the answers. */

import { Connection, Gone } from "./connection.js";
import { Clock, DAY } from "./clock.js";
import { timeAxis } from "./axis.js";
import { chartsResized, paintHidden } from "./charts.js";
import { Forecasts } from "./forecasts.js";
import { button, debounced, el, painted, setHidden, setText, throttled } from "./dom.js";
import { Layout } from "./layout.js";
import { Numbers } from "./numbers.js";
import { colourOfUser } from "./palette.js";
import { Settings } from "./settings.js";
import { queryOf, rangeOfSpan, runsOf, stateOf } from "./state.js";
import { Timeline } from "./timeline.js";
import { Transport } from "./transport.js";
import { rowsOf } from "./users.js";

/** A show that takes longer is stopped when a person wants another time, ms. */
export const LONG = 300;

/** Rectangles of the Gantt chart at most. */
const MOST = 20000;

/** The runs and what is shown of them; `App` adds what a person can do. */
export class Session {
  constructor() {
    this.root = document.documentElement;
    this.state = stateOf(location.search);
    this.at = this.state.at;
    this.runs = [];
    this.timelines = [];
    this.blockers = [];
    this.nows = [];
    this.users = [];
    this.unit = null;
    this.pending = [...this.state.edits];
    this.subjects = 1;
    this.over = false;
    this.playing = false;
    this.opening = true;
    this.shown = 0;
    this.clock = new Clock();
    const place = (id) => document.getElementById(id);
    this.showTheme();
    this.transport = new Transport(this, place("bar"));
    this.timeline = new Timeline(this, place("timeline"));
    this.numbers = new Numbers(this, place("numbers"));
    this.settings = new Settings(this, place("runs"));
    this.forecasts = new Forecasts(this);
    this.layout = new Layout(this, place("tabs"), place("view"));
    this.banner = place("banner");
    this.alert = place("alert");
    this.alertWords = el("span", {});
    this.alert.append(
      this.alertWords,
      button("Close", () => this.showError(""), { class: "quiet" }),
    );
    this.said = place("said");
    timeAxis.onMove = (from, to) => this.moved(from, to);
    timeAxis.onReset = () => this.setSpan(this.state.span);
    this.askRange = debounced(() => this.request(), 120);
    this.keepAddress = throttled(() => this.writeAddress(), 400);
    this.say = debounced((words) => setText(this.said, words), 1000);
    this.paintHidden = debounced(paintHidden, 300);
    this.transport.controls();
    this.connection = new Connection({ push: (message) => this.pushed(message), gone: () => this.gone() });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.showTheme());
    addEventListener(
      "resize",
      debounced(() => chartsResized(), 150),
    );
  }

  // What other modules ask.

  get two() {
    return this.runs.length > 1;
  }

  get position() {
    return { at: this.at, from: timeAxis.from, to: timeAxis.to };
  }

  get first() {
    return this.timeline.known.length ? this.timeline.first : 0;
  }

  get last() {
    return this.timeline.known.length ? this.timeline.last : DAY;
  }

  /** Where a run is. */
  now(run) {
    return this.nows[run] ?? this.at;
  }

  /** The name of a user, or the number in words. */
  who(user) {
    if (user < 0) return "nobody";
    const names = this.runs[0]?.names ?? {};
    return names[user] ?? this.runs[1]?.names?.[user] ?? String(user);
  }

  /** The name of a user, or "user 13". */
  whoWords(user, capital = false) {
    if (user < 0) return "nobody";
    const who = this.who(user);
    return who !== String(user) ? who : `${capital ? "User" : "user"} ${user}`;
  }

  /** A user in the address: the name, or the number where that is clearer. */
  inAddress(user) {
    const name = this.who(user);
    return user >= 0 && this.numberOf(name) === user ? name : user;
  }

  /** The number of the only user with a name; null if there is none. */
  numberOf(name) {
    const found = Object.entries(this.runs[0]?.names ?? {}).filter(([, one]) => one === name);
    return found.length === 1 ? Number(found[0][0]) : null;
  }

  /** Find the user that the address names, once the names are known. */
  findUser() {
    const { userWords } = this.state;
    if (userWords === null) return;
    this.state.userWords = null;
    this.state.user = this.numberOf(userWords) ?? this.state.user;
    if (this.state.user === null && userWords) this.unknownUser = userWords;
  }

  /** What to sort users by. */
  nameOrNumber(user) {
    return Object.keys(this.runs[0]?.names ?? {}).length ? this.who(user) : user;
  }

  colourOf(user) {
    return colourOfUser(user);
  }

  pushed(message) {
    const handlers = {
      hello: () => this.hello(message),
      run: () => this.takeRun(message),
      timeline: () => this.takeTimeline(message),
      progress: () => this.transport.showProgress(this.progressWords(message.text)),
      seeds: () => (message.error ? this.seedsFailed(message.error) : this.numbers.showSeeds(message)),
      forecast: () => this.forecasts.take(message),
      failed: () => this.failed(message.run, message.error),
    };
    handlers[message.push]?.();
  }

  /** "Simulating, day 3 of 90", without the last day where it is not known yet. */
  progressWords(text) {
    const [, last] = / of ([\d,]+)$/.exec(text) ?? [];
    return last && Number(last.replaceAll(",", "")) > this.last / DAY + 1 ? text.replace(/ of .*$/, "") : text;
  }

  hello(message) {
    this.subjects = Math.max(1, message.subjects?.length ?? 1);
    setHidden(this.banner, true);
    if (this.subjects > 1) this.state.two = true;
    document.title = `hpcrowd: ${(message.subjects ?? []).join(", ")}`;
    this.open();
  }

  gone() {
    this.playing = false;
    setText(this.banner, "The server is gone. Waiting for it; this page continues where it is.");
    setHidden(this.banner, false);
    this.transport.showProgress("");
    this.transport.controls();
  }

  takeRun(message) {
    this.runs[message.run] = message;
    this.forecasts.forget();
    if (message.run === 0) {
      this.clock = new Clock(message.clock);
      timeAxis.setClock(this.clock);
      this.findUser();
    }
    this.users = [];
    this.numbers.showSeeds(null);
  }

  takeTimeline(message) {
    this.timelines[message.run] = message;
    this.timeline.take(message);
    timeAxis.bounds = [this.first, this.last];
    if (message.done && this.answer && this.at > this.last) this.request({ at: this.last });
    if (message.done && this.answer) this.numbers.draw(this.answer.runs, this.context());
  }

  seedsFailed(line) {
    this.numbers.showSeeds(null);
    this.showError(`Other seeds: ${line}`);
  }

  failed(run, line) {
    const name = "ab"[run];
    if (!this.runs[run]) {
      this.state.two = false;
      this.showError(`Run ${"AB"[run]} could not begin: ${line}`);
      this.state[name] = {};
    } else this.state[name] = { ...this.runs[run].settings };
    this.settings.fail(run, line);
  }

  /** Begin the runs that the state describes; `line` is what was wrong with those before. */
  async open(again = false, line = "") {
    this.opening = true;
    this.busy(true);
    this.showError(line);
    this.settings.clear();
    try {
      const answer = await this.connection.ask("open", { runs: runsOf(this.state, this.subjects), at: this.at, again });
      this.at = answer.at ?? this.at ?? 0;
      this.runs.length = Math.min(this.runs.length, this.state.two ? 2 : 1);
      this.timeline.keep(this.runs.length);
      this.timelines.length = Math.min(this.timelines.length, this.runs.length);
      if (!this.two) this.state.two = false;
      if (!this.two && this.state.tab === "differences") this.state.tab = "cluster";
    } catch (problem) {
      if (problem instanceof Gone) return;
      if (this.alert.hidden || this.runs.length) this.showError(problem.message);
      if (!this.runs.length) {
        // An address that cannot be shown: the runs of the command are.
        if (!line) this.plainly(this.alertWords.textContent);
        else setText(document.getElementById("opening"), "No run could begin. Correct what the message says, then press Reset.");
        return;
      }
    } finally {
      this.opening = false;
      this.busy(false);
    }
    document.getElementById("opening")?.remove();
    setText(
      this.transport.name,
      [...new Set(this.runs.map((run) => (run.label || run.title || "").split(",")[0]))].join(" and "),
    );
    this.settings.draw(this.runs);
    this.showClocks();
    this.chooseSpan();
    this.layout.arrange();
    await this.request();
    if (this.unknownUser) this.showError(`User "${this.unknownUser}" is not in this run.`);
    this.unknownUser = "";
  }

  /** Leave out of the address's time what lies outside of the runs. */
  keepToRun() {
    if (!this.timeline.known.length || !this.timeline.known.every((run) => run.done)) return;
    const { state } = this;
    this.at = Math.min(Math.max(this.at, this.first), this.last);
    if (state.from !== null && (state.to <= this.first || state.from >= this.last || state.to - state.from > 3 * (this.last - this.first) + DAY))
      state.from = state.to = null;
  }

  /** Open the runs as the command described them. */
  plainly(line) {
    Object.assign(this.state, { a: {}, b: {}, edits: [], since: null, two: this.subjects > 1 });
    this.pending = [];
    queueMicrotask(() => this.open(false, line));
  }

  /** Two runs pass in step from their first second; say so where their clocks differ. */
  showClocks() {
    const [one, other] = this.runs.map((run) => run.clock ?? {});
    const differ = this.two && ["unix_start", "nominal", "zone"].some((key) => one[key] !== other[key]);
    const words = differ
      ? "The runs have different clocks: both pass in step from their origins, and local times are those of run A."
      : "";
    setText(this.banner, words);
    setHidden(this.banner, !words);
  }

  /** A page that opens near the beginning of a run shows a day, not a week that has hardly begun. */
  chooseSpan() {
    this.keepToRun();
    if (!this.state.spanGiven && this.state.from === null && this.at - this.first < 3 * DAY)
      this.state.span = this.timelines[0]?.done && this.last - this.first < DAY ? 0 : 1;
    this.state.spanGiven = true;
  }

  /**
   * Ask for the data of the visible panels; resolves when the last wish was drawn.
   * @param {Object} [wish] `at` or `event` (a user), or `panels` to ask only for these
   */
  request(wish = {}) {
    const before = this.wish;
    this.wish = { ...before, ...wish };
    if (wish.at !== undefined) delete this.wish.event;
    if (!wish.panels || (before && !before.panels)) delete this.wish.panels;
    else if (before?.panels) this.wish.panels = [...new Set([...before.panels, ...wish.panels])];
    if (this.working) {
      if (wish.at !== undefined && performance.now() - this.since > LONG) this.halt();
      return this.working;
    }
    if (this.opening || !this.runs.length) return Promise.resolve();
    this.working = this.work().finally(() => {
      this.working = null;
      this.busy(false);
    });
    return this.working;
  }

  async work() {
    this.busy(true);
    while (this.wish) {
      const { at = null, event = null, panels = null } = this.wish;
      this.wish = null;
      const target = at ?? this.at;
      const [from, to] = this.rangeAt(target);
      this.byHand = false;
      this.since = performance.now();
      try {
        const answer = await this.connection.ask("show", {
          at: target,
          ...(event === null ? {} : { event }),
          from: Math.floor(from),
          to: Math.ceil(to),
          user: this.state.user,
          job: this.state.job,
          panels: panels ?? this.layout.names(),
          most: MOST,
        });
        if (event !== null) delete answer.event;
        await this.draw(answer, panels, [from, to]);
      } catch (problem) {
        if (problem instanceof Gone) return;
        this.playing = false;
        this.showError(problem.message, true);
        this.transport.controls();
        console.error(problem);
      }
    }
  }

  /** The visible range when the time is `at`. */
  rangeAt(at) {
    const { state } = this;
    if (state.from === null) return rangeOfSpan(state.span, at, this.first, this.last);
    const by = at - (this.at ?? at);
    const length = state.to - state.from;
    if (!by) return [state.from, state.to];
    const wasIn = this.at >= state.from && this.at <= state.to;
    const from = wasIn ? state.from + by : at - 0.75 * length;
    return [from, from + length];
  }

  async draw(answer, panels, range) {
    this.answer = { ...answer, runs: answer.runs.map((run, place) => ({ ...this.answer?.runs?.[place], ...run })) };
    const [from, to] =
      this.byHand && this.state.from !== null
        ? [this.state.from, this.state.to]
        : this.state.from === null || answer.at !== this.at
          ? this.settledRange(answer.at, range)
          : [this.state.from, this.state.to];
    const moved = answer.at !== this.at || !this.shown;
    this.at = this.state.at = answer.at;
    if (this.state.from !== null) [this.state.from, this.state.to] = [from, to];
    this.over = Boolean(answer.over);
    this.nows = answer.runs.map((run) => run.now ?? answer.at);
    timeAxis.set(from, to);
    timeAxis.setNow(answer.at);
    this.showRange();
    this.blockers = answer.runs.map((run) => run.blockers ?? null);
    const context = this.context();
    const everything = this.layout.panels().filter((panel) => panel.wanted);
    if (panels && !panels.includes("numbers")) this.drawSome(answer, panels, context, everything);
    else {
      this.numbers.draw(answer.runs, context);
      for (const panel of everything) {
        if (panel.name === "differences") panel.updateBoth(answer.runs, context);
        else panel.update(answer.runs[panel.run]?.[panel.name], { ...context, blockers: this.blockers[panel.run] });
      }
    }
    context.apply();
    const users = answer.runs[0]?.users?.columns;
    if (users) this.users = rowsOf({ user: users.user }).map((row) => row.user);
    this.layout.showUsers();
    this.transport.draw();
    this.timeline.draw();
    this.forecasts.follow();
    if (answer.message) this.showError(answer.message, true);
    else if (this.passingError) this.showError("");
    if (moved && !this.playing) this.say(`${this.clock.words(this.at)}${this.over ? ", finished" : ""}`);
    const wanted = this.rangeAt(answer.at);
    if (Math.abs(wanted[0] - range[0]) + Math.abs(wanted[1] - range[1]) > 0.01 * (wanted[1] - wanted[0])) this.request();
    await painted();
    this.paintHidden();
    this.shown += 1;
    // Browsers limit how often it may change; while playing it follows behind.
    if (this.playing) this.keepAddress();
    else this.writeAddress();
    Object.assign(document.body.dataset, { shown: this.shown, at: this.at, ready: "1" });
  }

  /** Write what is shown into the address. */
  writeAddress() {
    history.replaceState(null, "", `?${queryOf(this.state, (user) => this.inAddress(user))}`);
  }

  /** Draw only the panels that were asked for. */
  drawSome(answer, panels, context, everything) {
    for (const panel of everything) {
      const data = answer.runs[panel.run]?.[panel.name];
      if (data && panels.includes(panel.name)) panel.update(data, context);
      else if (panels.includes("blockers")) panel.chosen?.({ ...context, blockers: this.blockers[panel.run] });
    }
  }

  settledRange(at, range) {
    return this.state.from === null
      ? rangeOfSpan(this.state.span, at, this.first, this.last)
      : at >= range[0] && at <= range[1]
        ? range
        : this.rangeAt(at);
  }

  /** What the panels need to know besides their data. */
  context() {
    const wishes = new Map();
    const app = this;
    return {
      two: this.two,
      now: this.at,
      seeds: this.runs.some((run) => run?.seeds),
      wholes: this.runs.map((_, place) => this.timelines[place]?.numbers ?? null),
      rangeWords: `Shown: ${this.clock.words(timeAxis.from)} to ${this.clock.words(timeAxis.to)}.`,
      blockers: null,
      /** The same y axis for the same panel of both runs. */
      sameY(panel, key, top, apply, bottom = 0) {
        const name = `${panel.saves}/${key}`;
        const wish = wishes.get(name) ?? { top: -Infinity, bottom: Infinity, applies: [] };
        wish.top = Math.max(wish.top, top);
        wish.bottom = Math.min(wish.bottom, bottom);
        wish.applies.push(apply);
        wishes.set(name, wish);
      },
      apply() {
        for (const { top, bottom, applies } of wishes.values()) for (const apply of applies) apply(top, bottom);
        for (const panel of app.layout.panels()) panel.settled?.();
      },
    };
  }

  /** Show an error until it is closed; one of a request also ends with the next request that works. */
  showError(line, passing = false) {
    this.passingError = passing;
    setText(this.alertWords, line);
    setHidden(this.alert, !line);
  }

  busy(is) {
    document.body.dataset.busy = is || this.opening ? "1" : "0";
    document.body.setAttribute("aria-busy", String(is || this.opening));
  }
}
