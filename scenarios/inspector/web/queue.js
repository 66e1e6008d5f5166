/** Waiting jobs with the reason of each, and who blocks the chosen one. */

import { button, el, setHidden, setText } from "./dom.js";
import { count, duration, plural } from "./clock.js";
import { Panel } from "./panel.js";
import { Table } from "./table.js";

/** Jobs listed in the box that says why a job waits. */
const MOST = 24;

export class QueuePanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "queue", title: "Waiting jobs" });
    this.why = new WhyBox(app, run);
    this.table = new Table({
      kind: "queue",
      label: `Waiting jobs of run ${"AB"[run]}`,
      columns: this.columns(false, false),
      keyOf: (row) => row.job,
      onPick: (row) => app.choose({ job: row.job, user: row.user }),
      nothing: "No job waits.",
    });
    this.body.append(this.why.element, this.table.element);
  }

  columns(clusters, queues) {
    const { app } = this;
    return [
      { key: "job", text: "Job", number: true },
      { key: "user", text: "User", show: (user) => app.who(user), value: (row) => app.nameOrNumber(row.user) },
      { key: "processors", text: "Processors", number: true, show: count },
      ...(clusters ? [{ key: "cluster", text: "Cluster" }] : []),
      ...(queues ? [{ key: "queue", text: "Queue" }] : []),
      {
        key: "requested",
        text: "Requested",
        number: true,
        show: (seconds) => (seconds >= 0 && seconds !== null ? duration(seconds) : "none"),
      },
      { key: "waited", text: "Waited", number: true, show: duration },
      { key: "reason", text: "Why it waits", wide: true },
    ];
  }

  draw(data, context) {
    const rows = data.rows ?? [];
    this.table.setColumns(
      this.columns(
        rows.some((row) => row.cluster),
        rows.some((row) => row.queue),
      ),
    );
    this.setTitle(data.total ? plural(data.total, "waiting job") : "Waiting jobs");
    this.setAbout(
      data.total > rows.length
        ? `The first ${count(rows.length)} are shown; the CSV file has all. Click a job to see who blocks it.`
        : rows.length
          ? "Click a job to see who blocks it."
          : "",
    );
    this.table.chosen = (row) => row.job === this.app.state.job;
    this.table.setRows(rows);
    this.why.update(context.blockers);
  }

  chosen(context) {
    this.table.setChosen((row) => row.job === this.app.state.job);
    this.table.reveal();
    this.why.update(context?.blockers ?? null);
  }
}

/** Who holds what the chosen job waits for. */
class WhyBox {
  constructor(app, run) {
    this.app = app;
    this.heading = el("h4", {});
    this.words = el("p", {});
    this.users = el("div", { class: "bars" });
    this.jobs = el("div", { class: "chips" });
    this.ahead = el("div", { class: "chips" });
    this.holds = el("h5", { text: "Who holds what it needs" });
    this.running = el("h5", { text: "Running jobs it waits for" });
    this.before = el("h5", { text: "Jobs before it in the queue" });
    this.element = el(
      "section",
      { class: "why", id: `why-${"ab"[run]}`, "aria-label": `Why the chosen job waits in run ${"AB"[run]}`, hidden: true },
      el(
        "header",
        {},
        this.heading,
        button("Close", () => app.choose({ job: null }), { class: "quiet" }),
      ),
      this.words,
      this.holds,
      this.users,
      this.running,
      this.jobs,
      this.before,
      this.ahead,
    );
  }

  update(data) {
    const shown = Boolean(data && !data.error && this.app.state.job !== null && data.job === this.app.state.job);
    setHidden(this.element, !shown);
    if (!shown) return;
    const key = JSON.stringify(data);
    if (key === this.key) return;
    this.key = key;
    setText(this.heading, data.waits === false ? `Job ${data.job}` : `Why job ${data.job} waits`);
    this.element.classList.toggle("calm", data.waits === false);
    setText(this.words, data.words ?? "");
    const { app } = this;
    const most = Math.max(...(data.users ?? []).map((one) => one.processors), 1);
    this.users.replaceChildren(
      ...(data.users ?? []).slice(0, 8).map((one) => {
        const bar = el("span", { class: "bar" });
        bar.style.width = `${(100 * one.processors) / most}%`;
        bar.style.background = app.colourOf(one.user);
        return el(
          "button",
          {
            type: "button",
            class: "barline",
            on: { click: () => app.choose({ user: one.user, tab: "user" }) },
            title: `Show ${app.whoWords(one.user)}`,
          },
          el("span", { class: "who", text: app.who(one.user) }),
          el("span", { class: "track" }, bar),
          el("span", { class: "value", text: count(one.processors) }),
        );
      }),
    );
    const chip = (one, words) => button(words, () => app.choose({ job: one.job, user: one.user }), { class: "chip" });
    const { clock } = app;
    this.jobs.replaceChildren(
      ...(data.jobs ?? [])
        .slice(0, MOST)
        .map((one) =>
          chip(one, `${one.job} ${app.who(one.user)}: ${count(one.processors)} until ${clock.near(one.end, app.now(0))}`),
        ),
    );
    this.ahead.replaceChildren(
      ...(data.ahead ?? [])
        .slice(0, MOST)
        .map((one) => chip(one, `${one.job} ${app.who(one.user)}: ${count(one.processors)}${one.why ? `, ${one.why}` : ""}`)),
    );
    const more = (data.ahead_jobs ?? 0) - Math.min((data.ahead ?? []).length, MOST);
    if (more > 0) this.ahead.append(el("span", { class: "about", text: `and ${plural(more, "other")}` }));
    setHidden(this.holds, !(data.users ?? []).length);
    setHidden(this.running, !(data.jobs ?? []).length);
    setHidden(this.before, !(data.ahead ?? []).length);
  }
}
