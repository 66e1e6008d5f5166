/** The tabs, the spans, and the panels of each tab, aligned in rows. */

import { button, el, rove, setAttribute, setHidden, setText } from "./dom.js";
import { SPANS } from "./state.js";
import { DelaysPanel } from "./delays.js";
import { DifferencesPanel } from "./differences.js";
import { EditPanel } from "./edit.js";
import { AskPanel, FansPanel, StartsPanel } from "./forecast.js";
import { GanttPanel } from "./gantt.js";
import { GraphPanel } from "./graph.js";
import { LoadPanel } from "./load.js";
import { PowerPanel } from "./power.js";
import { QueuePanel } from "./queue.js";
import { SubmissionsPanel } from "./submissions.js";
import { DecisionsPanel, JobsPanel, PausesPanel, WeekPanel, WordsPanel } from "./user.js";
import { UsersPanel } from "./users.js";

/** Each tab: key, name, panels from top to bottom, whether a panel is made once for both runs. */
const TABS = [
  ["cluster", "Cluster", [LoadPanel, PowerPanel, GanttPanel, QueuePanel, SubmissionsPanel]],
  ["users", "Users", [UsersPanel]],
  ["user", "One user", [WordsPanel, GraphPanel, EditPanel, JobsPanel, DecisionsPanel, WeekPanel, PausesPanel]],
  ["delays", "Who slows whom", [DelaysPanel]],
  ["forecast", "Forecast", [AskPanel, FansPanel, StartsPanel]],
  ["differences", "Differences", [DifferencesPanel]],
];

/** Panels that are made once, for both runs. */
const ONCE = new Set([AskPanel, EditPanel, DifferencesPanel]);

const SPAN_NAMES = { 1: "1 day", 7: "7 days", 28: "28 days", 0: "Whole run" };

export class Layout {
  constructor(app, tabs, view) {
    this.app = app;
    this.view = view;
    this.tabs = new Map();
    this.list = el("div", { role: "tablist", "aria-label": "Views", class: "tablist" });
    this.spans = el(
      "div",
      { class: "choice", role: "group", "aria-label": "Visible time" },
      ...SPANS.map((span) => button(SPAN_NAMES[span], () => app.setSpan(span), { data: { span } })),
    );
    this.range = el("span", { class: "range" });
    this.user = el("select", { id: "user" });
    this.user.addEventListener("change", () =>
      app.choose({ user: this.user.value === "" ? null : Number(this.user.value), job: null }),
    );
    this.userBox = el("span", { class: "pick" }, el("label", { for: "user", text: "User" }), this.user);
    tabs.append(this.list, this.userBox, this.spans, this.range);
    for (const [key, name, kinds] of TABS) {
      const tab = el("button", {
        type: "button",
        role: "tab",
        id: `tab-${key}`,
        "aria-controls": `view-${key}`,
        text: name,
        on: { click: () => app.setTab(key) },
      });
      const grid = el("div", { class: "grid" });
      const panel = el(
        "div",
        { role: "tabpanel", id: `view-${key}`, "aria-labelledby": `tab-${key}`, hidden: true },
        el("h2", { class: "hidden", text: name }),
        grid,
      );
      this.list.append(tab);
      view.append(panel);
      this.tabs.set(key, { key, tab, grid, panel, kinds, made: new Map() });
    }
    rove(this.list, '[role="tab"]');
    this.hint = el("p", { class: "nothing", text: "Choose a user: in the list above, in the table of users, or by clicking a job." });
    this.tabs.get("user").panel.append(this.hint);
  }

  /** Make what is missing and remove what is too much. */
  arrange() {
    const { state, two } = this.app;
    for (const { key, tab, panel } of this.tabs.values()) {
      const on = key === state.tab;
      setAttribute(tab, "aria-selected", String(on));
      setAttribute(tab, "tabindex", on ? "0" : "-1");
      setHidden(panel, !on);
      if (key === "differences") setHidden(tab, !two);
    }
    this.app.root.classList.toggle("is-two", two);
    const { grid, kinds, made } = this.current;
    let last = null;
    for (const Kind of kinds) {
      if (!made.has(Kind)) made.set(Kind, []);
      const panels = made.get(Kind);
      while (panels.length < this.wanted(Kind)) {
        const panel = new Kind(this.app, panels.length);
        const before = panels.at(-1)?.element ?? last;
        if (before) before.after(panel.element);
        else grid.prepend(panel.element);
        panels.push(panel);
      }
      last = panels.at(-1)?.element ?? last;
    }
    for (const one of this.tabs.values()) {
      for (const [Kind, panels] of one.made) {
        while (panels.length > this.wanted(Kind)) this.drop(panels.pop());
      }
    }
    for (const panel of this.panels()) panel.folded(state.hidden.has(panel.saves));
    const noUser = state.tab === "user" && state.user === null;
    setHidden(this.hint, !noUser);
    setHidden(this.tabs.get("user").grid, noUser);
    setHidden(this.userBox, !["user", "delays", "forecast"].includes(state.tab));
    this.showSpan();
  }

  /** How many panels of a kind there are: one for each run, one for both, or none. */
  wanted(Kind) {
    if (Kind.offered && !Kind.offered(this.app)) return 0;
    return this.app.two && !ONCE.has(Kind) ? 2 : 1;
  }

  drop(panel) {
    for (const value of Object.values(panel.charts ?? { chart: panel.chart })) value?.remove();
    panel.table?.remove();
    panel.element.remove();
  }

  get current() {
    return this.tabs.get(this.app.state.tab);
  }

  /** Panels of the visible tab. */
  panels() {
    return [...this.current.made.values()].flat();
  }

  /** Names of the panels to ask the server for. */
  names() {
    const { state } = this.app;
    const wanted = new Set();
    for (const panel of this.panels()) if (panel.wanted && panel.name !== "differences") wanted.add(panel.name);
    if (state.tab === "differences") wanted.add("users");
    if (state.user === null) wanted.delete("user");
    if (state.tab === "cluster" && state.job !== null) wanted.add("blockers");
    if (["user", "delays", "forecast"].includes(state.tab) && !this.app.users.length) wanted.add("users");
    return ["numbers", ...wanted];
  }

  showSpan() {
    const { state } = this.app;
    for (const one of this.spans.children)
      setAttribute(one, "aria-pressed", String(state.from === null && Number(one.dataset.span) === state.span));
    setHidden(this.spans, !["cluster", "user", "delays"].includes(state.tab));
    setHidden(this.range, !["cluster", "user", "delays"].includes(state.tab));
  }

  /** Write the visible range. */
  showRange(words) {
    setText(this.range, words);
  }

  /** Fill the list of users. */
  showUsers() {
    const { users, state } = this.app;
    const key = users.join();
    if (key !== this.usersKey) {
      this.usersKey = key;
      const sorted = [...users].sort((one, other) =>
        this.app.who(one).localeCompare(this.app.who(other), "en", { numeric: true }),
      );
      this.user.replaceChildren(
        el("option", { value: "", text: "choose" }),
        ...sorted.map((user) => el("option", { value: String(user), text: this.app.who(user) })),
      );
    }
    const value = state.user === null ? "" : String(state.user);
    if (this.user.value !== value) {
      if (value && ![...this.user.options].some((one) => one.value === value))
        this.user.append(el("option", { value, text: this.app.who(state.user) }));
      this.user.value = value;
    }
  }
}
