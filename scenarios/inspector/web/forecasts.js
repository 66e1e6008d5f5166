/** Forecasts of the runs: what is asked for, and what the server has found. */

import { debounced } from "./dom.js";
import { Gone } from "./connection.js";

/** Wait so long for further steps before asking, ms. */
const WAIT = 250;

/** Asks for a forecast whenever the tab shows another second, and keeps what was found. */
export class Forecasts {
  constructor(app) {
    this.app = app;
    this.asked = 0;
    this.askedAt = null;
    this.key = "";
    this.forget();
    this.soon = debounced(() => this.ask(), WAIT);
  }

  /** What a reader chose: `futures`, `days`, `jobs`. */
  get wish() {
    return this.app.state.forecast;
  }

  /** Forget what was found: the runs are others. */
  forget() {
    this.key = "";
    /** For each run the last message. */
    this.news = [];
    /** For each run what its futures say. */
    this.found = [];
  }

  /** Choose how many futures, how far, or which jobs one would submit. */
  choose(wish) {
    Object.assign(this.wish, wish);
    this.app.keepAddress();
    this.redraw();
    this.ask();
  }

  /** The page has been drawn, perhaps at another second. */
  follow() {
    if (this.app.at !== this.askedAt) this.key = "";
    if (this.app.state.tab === "forecast") this.soon();
  }

  get possible() {
    const { app } = this;
    const whys = (app.answer?.runs ?? []).map((run) => run.forecast?.why);
    return whys.some((why) => why === "");
  }

  ask() {
    const { app, wish } = this;
    if (app.state.tab !== "forecast" || app.playing || app.opening || !this.possible) return;
    const user = wish.jobs.length ? app.state.user : null;
    const content = { futures: wish.futures, days: wish.days, jobs: wish.jobs, user };
    const key = JSON.stringify([app.at, content]);
    if (key === this.key) return;
    Object.assign(this, { key, askedAt: app.at, news: [] });
    const answer = app.connection.ask("forecast", content);
    this.asked = app.connection.last;
    answer.catch((problem) => {
      this.key = "";
      if (!(problem instanceof Gone)) app.showError(problem.message, true);
    });
    this.redraw();
  }

  /** Take a message of the server. */
  take(message) {
    if (message.asked !== this.asked) return;
    const { run } = message;
    this.news[run] = { ...this.news[run], ...message };
    if (message.error) this.found[run] = null;
    if (message.found) {
      this.found[run] = message.found;
      if (!this.working) this.app.say("The forecast is there.");
    }
    this.redraw();
    this.app.paintHidden();
  }

  /** Whether futures are being simulated. */
  get working() {
    return Boolean(this.key) && this.app.runs.some((_, run) => !this.settled(run));
  }

  /** Whether nothing more is to come of a run. */
  settled(run) {
    const news = this.news[run];
    return Boolean(news?.error || (news?.found && news.done === news.of));
  }

  /** Share of the futures that are there. */
  get progress() {
    const all = this.app.runs.map((_, run) => (this.settled(run) ? 1 : (this.news[run]?.done ?? 0) / (this.news[run]?.of || 1)));
    return all.length ? Math.min(...all) : 0;
  }

  /** The first line of what went wrong. */
  get problem() {
    return this.news.find((one) => one?.error)?.error ?? "";
  }

  redraw() {
    for (const panel of this.app.layout.panels()) panel.forecasted?.();
  }
}
