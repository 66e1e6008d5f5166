/** Start and wiring: what a person can do with the page. */

import { charts, timeAxis } from "./axis.js";
import { recolourCharts } from "./charts.js";
import { DAY, duration, plural } from "./clock.js";
import { saveFile } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { themeChanged } from "./palette.js";
import { LONG, Session } from "./session.js";

/** Further than the end of a run whose end is not known yet, s. */
const FAR = 10 * 366 * DAY;

/** Shortest time between two pictures while playing, ms. */
const FRAME = 100;

/** The page. */
class App extends Session {
  goTo(at) {
    const to = Math.min(Math.max(Math.round(at), this.first), Math.max(this.last, this.first));
    return this.request({ at: to });
  }

  /** To the end, also where that is still being looked for. */
  goToEnd() {
    const { known } = this.timeline;
    if (known.length && known.every((run) => run.done)) return this.goTo(this.last);
    return this.request({ at: this.last + FAR });
  }

  step(by) {
    return this.goTo((this.wish?.at ?? this.at) + by);
  }

  goToEvent() {
    if (this.state.user !== null) this.request({ event: this.state.user });
  }

  goToBusiest() {
    const found = this.timelines.map((one) => one?.busiest).find((at) => at !== null && at !== undefined);
    if (found !== undefined) this.goTo(found);
  }

  halt() {
    this.playing = false;
    this.transport.controls();
    this.connection.ask("halt").catch(() => {});
  }

  togglePlay() {
    if (this.playing) {
      this.playing = false;
      if (this.working && performance.now() - this.since > LONG) this.halt();
      this.transport.controls();
    } else this.play();
  }

  async play() {
    if (this.over || this.opening) return;
    this.playing = true;
    this.transport.controls();
    let due = performance.now();
    while (this.playing && !this.over) {
      await this.goTo(this.at + this.state.speed);
      if (this.at >= this.last && this.over) break;
      due = Math.max(due + FRAME, performance.now());
      await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
    }
    this.playing = false;
    this.transport.draw();
    this.say(this.clock.words(this.at));
  }

  setSpeed(speed) {
    this.state.speed = speed;
    this.transport.controls();
    this.keepAddress();
  }

  setSpan(span) {
    Object.assign(this.state, { span, from: null, to: null });
    timeAxis.set(...this.rangeAt(this.at));
    this.layout.showSpan();
    this.request();
  }

  moved(from, to) {
    this.byHand = true;
    Object.assign(this.state, { from, to });
    this.showRange();
    this.layout.showSpan();
    this.timeline.draw();
    this.keepAddress();
    this.askRange();
  }

  showRange() {
    this.layout.showRange(`${this.clock.words(timeAxis.from)} \u2013 ${this.clock.words(timeAxis.to)}`);
  }

  setTab(tab) {
    if (tab === "differences" && !this.two) return;
    this.state.tab = tab;
    this.layout.arrange();
    this.keepAddress();
    this.request();
  }

  /** Choose a user or a job, and perhaps another tab. */
  choose({ user = this.state.user, job = this.state.job, tab = this.state.tab }) {
    const { state } = this;
    const newUser = user !== state.user;
    if (newUser) this.unit = null;
    Object.assign(state, { user, job });
    this.blockers = [];
    this.layout.showUsers();
    this.transport.controls();
    this.keepAddress();
    if (tab !== state.tab) {
      this.setTab(tab);
      return;
    }
    this.layout.arrange();
    this.showChosen();
    if (state.tab === "cluster" && job !== null) this.request({ panels: ["blockers"] });
    else if (state.tab === "user" && user !== null && newUser) this.request({ panels: ["user"] });
  }

  /** Choose a user; open the one that is already chosen. */
  chooseOrOpen(user) {
    this.choose({ user, job: null, tab: user === this.state.user ? "user" : this.state.tab });
  }

  /** Choose a unit of the user's graph, and perhaps one of its jobs. */
  chooseUnit(unit, job = null) {
    this.unit = unit;
    this.state.job = job;
    this.keepAddress();
    this.showChosen();
  }

  showChosen() {
    for (const panel of this.layout.panels()) if (panel.wanted) panel.chosen?.({ blockers: this.blockers[panel.run] });
  }

  toggle(panel) {
    const { hidden } = this.state;
    if (!hidden.delete(panel)) hidden.add(panel);
    this.layout.arrange();
    this.keepAddress();
    if (!hidden.has(panel)) this.request();
  }

  toggleSecond() {
    this.state.two = !this.two;
    if (!this.state.two) Object.assign(this.state, { b: {}, edits: [], since: null });
    else this.state.b = { ...this.state.a };
    this.openThen(() => {
      if (this.two) this.settings.boxes[1].details.open = true;
    });
  }

  async openThen(action) {
    this.playing = false;
    await this.working;
    await this.open();
    action?.();
  }

  changeSettings(run, settings) {
    this.state["ab"[run]] = settings;
    const lost = run === 1 ? this.state.edits.length : 0;
    if (lost) Object.assign(this.state, { since: null, edits: [] });
    this.openThen(() => {
      if (lost && !this.state.edits.length)
        this.showError(`Run B began anew with other settings, and lost ${plural(lost, "change")} by hand.`);
    });
  }

  async reset() {
    this.playing = false;
    await this.working;
    this.at = null;
    await this.open(true);
  }

  /** An edit in words. */
  editWords(edit) {
    const who = this.whoWords(edit.user);
    if (edit.kind === "behaviour") return `${who} behaves as ${edit.value}`;
    if (edit.kind === "remove_edge") return `${who}: ${edit.after} does not wait for ${edit.before}`;
    const words = `${who}: ${edit.after} ${edit.kind === "add_edge" ? "also waits for" : "waits for"} ${edit.before}`;
    return `${words}, think time ${duration(edit.seconds)}`;
  }

  addEdit(edit) {
    const same = (one) =>
      one.user === edit.user &&
      one.before === edit.before &&
      one.after === edit.after &&
      (one.kind === "behaviour") === (edit.kind === "behaviour");
    this.pending = [...this.pending.filter((one) => !same(one)), edit];
    this.showChosen();
  }

  dropPending(number) {
    this.pending = this.pending.filter((_, place) => place !== number);
    this.showChosen();
  }

  /** Go on from here with the edits, as a second run. */
  goOn() {
    Object.assign(this.state, { two: true, since: this.at, edits: [...this.pending], b: { ...this.state.a } });
    this.openThen();
  }

  removeEdit(number) {
    this.state.edits = this.state.edits.filter((_, place) => place !== number);
    this.pending = [...this.state.edits];
    if (!this.state.edits.length) Object.assign(this.state, { two: false, since: null });
    this.openThen();
  }

  async askSeeds(count) {
    try {
      await this.connection.ask("seeds", { count });
    } catch (problem) {
      this.showError(problem.message);
    }
  }

  async save(panel, kind) {
    try {
      const content = {
        run: panel.run,
        panel: panel.saves,
        kind,
        from: Math.floor(timeAxis.from),
        to: Math.ceil(timeAxis.to),
        user: this.state.user,
        job: this.state.job,
      };
      const file = panel.file?.(kind) ?? (await this.connection.ask("save", content));
      saveFile(file.name, file.mime, file.data);
    } catch (problem) {
      this.showError(problem.message);
    }
  }

  setTheme(theme) {
    this.state.theme = theme;
    this.showTheme();
    this.keepAddress();
  }

  showTheme() {
    if (this.state.theme === "auto") delete this.root.dataset.theme;
    else this.root.dataset.theme = this.state.theme;
    themeChanged();
    recolourCharts();
    this.timeline?.drawBack();
  }
}

const app = new App();
listenToKeys(app);
window.hpcrowd = Object.freeze({
  get state() {
    return { ...app.state };
  },
  charts,
});
