/** All users of a run. */

import { el, setText } from "./dom.js";
import { count, duration, plural } from "./clock.js";
import { unpack } from "./connection.js";
import { Panel } from "./panel.js";
import { Table } from "./table.js";

/** Rows of a table that came as columns. */
export function rowsOf(columns) {
  const lists = Object.entries(columns ?? {})
    .filter(([, values]) => values)
    .map(([key, values]) => [key, unpack(values)]);
  const size = lists.length ? lists[0][1].length : 0;
  const rows = [];
  for (let place = 0; place < size; place++) {
    const row = {};
    for (const [key, values] of lists)
      row[key] = typeof values[place] === "number" && Number.isNaN(values[place]) ? null : values[place];
    rows.push(row);
  }
  return rows;
}

/** A dot with the colour of a user and the name. */
export function userCell(app) {
  return (row, cell, words) => {
    if (cell.dataset.user === String(row.user) && cell.dataset.words === words) return;
    cell.dataset.user = row.user;
    cell.dataset.words = words;
    const dot = el("span", { class: "dot" });
    dot.style.background = app.colourOf(row.user);
    cell.replaceChildren(dot, words);
  };
}

export class UsersPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "users", title: "Users", wide: true });
    this.columns = [
      {
        key: "user",
        text: "User",
        show: (user) => app.who(user),
        value: (row) => app.nameOrNumber(row.user),
        cell: userCell(app),
      },
      { key: "state", text: "State" },
      { key: "done", text: "Jobs done", number: true, show: count },
      { key: "running", text: "Running", number: true, show: count },
      { key: "waiting", text: "Waiting", number: true, show: count },
      {
        key: "given_up",
        text: "Given up",
        number: true,
        show: count,
        title: "Jobs that the user took back before they started",
      },
      { key: "wait", text: "Mean wait", number: true, show: duration },
      {
        key: "lateness",
        text: "Mean lateness",
        number: true,
        show: duration,
        title: "How much later than recorded the user submits on average",
      },
      {
        key: "slowdown",
        text: "Slowdown",
        number: true,
        show: (value) =>
          value === null || value === undefined
            ? ""
            : value.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
        title: "Mean bounded slowdown",
      },
      {
        key: "mood",
        text: "Mood",
        number: true,
        show: (value) => (value === null || value === undefined ? "" : typeof value === "number" ? value.toFixed(2) : value),
      },
      { key: "next", text: "Next submission", number: true, show: (value) => app.clock.words(value) },
      { key: "behaviour", text: "Behaviour" },
      { key: "submits_to", text: "Submits to" },
    ];
    this.table = new Table({
      kind: "users",
      label: `Users of run ${"AB"[run]}`,
      columns: this.columns,
      keyOf: (row) => row.user,
      onPick: (row) => app.chooseOrOpen(row.user),
      search: true,
      nothing: "There are no users.",
    });
    this.setAbout("Click a user to choose them, and again to open them.");
    this.states = el("p", { class: "about" });
    this.body.append(this.table.element, this.states);
  }

  draw(data) {
    const rows = rowsOf(data.columns);
    const has = new Set(
      this.columns
        .filter((column) => rows.some((row) => row[column.key] !== null && row[column.key] !== undefined))
        .map((column) => column.key),
    );
    this.table.setColumns(this.columns.filter((column) => has.has(column.key) || column.key === "user"));
    this.setTitle(plural(rows.length, "user"));
    this.table.chosen = (row) => row.user === this.app.state.user;
    this.table.setRows(rows);
    const there = new Set(rows.map((row) => row.state));
    setText(
      this.states,
      Object.entries(data.states ?? {})
        .filter(([name]) => there.has(name))
        .map(([name, words]) => `${name}: ${words}`)
        .join("; "),
    );
  }

  chosen() {
    this.table.setChosen((row) => row.user === this.app.state.user);
  }
}
