/** Differences between two runs, user by user. */

import { el, setHidden, setText } from "./dom.js";
import { count, duration, plural } from "./clock.js";
import { Panel } from "./panel.js";
import { Table } from "./table.js";
import { differenceWords, judged } from "./numbers.js";
import { rowsOf, userCell } from "./users.js";

/** What can be compared: key, words, unit. */
const MEASURES = [
  ["wait", "Mean wait", "s"],
  ["lateness", "Mean lateness", "s"],
  ["slowdown", "Slowdown", ""],
  ["given_up", "Jobs given up", "jobs"],
];

/** A cell with a bar: to the right if positive, to the left if negative. */
export function barCell(valueOf, mostOf, signed = false) {
  return (row, cell) => {
    let bar = cell.firstChild;
    if (!bar) {
      bar = el("span", { class: `inbar${signed ? " signed" : ""}` }, el("span", {}));
      cell.append(bar);
    }
    const value = valueOf(row);
    const share = Math.min(1, Math.abs(value ?? 0) / mostOf());
    const key = `${value}/${mostOf()}`;
    if (bar.dataset.key === key) return;
    bar.dataset.key = key;
    const { style } = bar.firstChild;
    style.width = `${share * (signed ? 50 : 100)}%`;
    if (signed) {
      style.left = value < 0 ? `${50 - 50 * share}%` : "50%";
      bar.className = `inbar signed ${judged(value, "lower")}`;
    }
  };
}

export class DifferencesPanel extends Panel {
  constructor(app) {
    super(app, 0, {
      name: "differences",
      title: "Differences by user, B \u2212 A",
      wide: true,
      id: "differences",
      saves: "differences",
    });
    this.both = true;
    this.measure = "wait";
    this.most = 1;
    this.choice = el(
      "div",
      { class: "choice", role: "group", "aria-label": "What to compare" },
      ...MEASURES.map(([key, words]) =>
        el("button", {
          type: "button",
          text: words,
          "aria-pressed": String(key === this.measure),
          data: { measure: key },
          on: { click: () => this.compare(key) },
        }),
      ),
    );
    this.summary = el("p", { class: "about" });
    this.table = new Table({
      kind: "differences",
      label: "Differences by user",
      columns: this.columns(),
      keyOf: (row) => row.user,
      onPick: (row) => app.chooseOrOpen(row.user),
      search: true,
      sort: ["size", -1],
      nothing: "There is nothing to compare yet.",
    });
    this.body.append(this.choice, this.summary, this.table.element);
  }

  columns() {
    const { app } = this;
    const unit = () => MEASURES.find(([key]) => key === this.measure)[2];
    const show = (value) => 
      value === null || value === undefined ? "" : unit() === "s" ? duration(value) : unit() ? count(value) : value.toFixed(1);
    return [
      {
        key: "user",
        text: "User",
        show: (user) => app.who(user),
        value: (row) => app.nameOrNumber(row.user),
        cell: userCell(app),
      },
      { key: "a", text: "A", number: true, show },
      { key: "b", text: "B", number: true, show },
      {
        key: "difference",
        text: "B \u2212 A",
        number: true,
        show: (value) => {
          const words = differenceWords(value, unit());
          const verdict = words === "the same" ? "" : judged(value, "lower");
          return verdict ? `${words} ${verdict}` : words;
        },
        cell: (row, cell, words) => {
          setText(cell, words);
          cell.className = `number ${words.endsWith("better") ? "better" : words.endsWith("worse") ? "worse" : ""}`;
        },
      },
      {
        key: "size",
        text: "Size",
        wide: true,
        number: true,
        show: () => "",
        value: (row) => (row.difference === null ? null : Math.abs(row.difference)),
        cell: barCell(
          (row) => row.difference,
          () => this.most,
          true,
        ),
      },
      { key: "done", text: "Jobs done, A and B", number: true, show: (value) => value ?? "" },
    ];
  }

  compare(key) {
    this.measure = key;
    for (const one of this.choice.children) one.setAttribute("aria-pressed", String(one.dataset.measure === key));
    if (this.answers) this.drawRows();
  }

  /** @param {Object[]} answers of both runs, each with `users` */
  updateBoth(answers, context) {
    this.update(answers[0]?.users?.error ? answers[0].users : answers[1]?.users?.error ? answers[1].users : answers, context);
  }

  draw(answers) {
    if (!answers[0]?.users || !answers[1]?.users) return;
    this.answers = answers.slice(0, 2).map((answer) => rowsOf(answer.users.columns));
    this.drawRows();
  }

  drawRows() {
    const [left, right] = this.answers;
    const others = new Map(right.map((row) => [row.user, row]));
    const numbers = new Set([...left, ...right].map((row) => row.user));
    const known = new Map(left.map((row) => [row.user, row]));
    const givesUp = (row) => (row.given_up ?? 0) > 0;
    setHidden(this.choice.lastChild, ![...left, ...right].some(givesUp));
    const none = this.measure === "given_up" ? 0 : null; // a run in which nobody gave up has no such column
    const valueOf = (row) => (row ? (row[this.measure] ?? none) : null);
    const rows = [...numbers].map((user) => {
      const [one, other] = [known.get(user), others.get(user)];
      const [a, b] = [valueOf(one), valueOf(other)];
      return {
        user,
        a,
        b,
        difference: a === null || b === null ? null : b - a,
        done: `${count(one?.done) || "\u2013"} and ${count(other?.done) || "\u2013"}`,
      };
    });
    this.most = Math.max(...rows.map((row) => Math.abs(row.difference ?? 0)), 1e-9);
    const compared = rows.filter((row) => row.difference !== null);
    const better = compared.filter((row) => row.difference < 0).length;
    const worse = compared.filter((row) => row.difference > 0).length;
    const stay = compared.filter((row) => row.a && !row.b).length;
    const leave = compared.filter((row) => !row.a && row.b).length;
    const staying =
      this.measure === "given_up" ? `${plural(stay, "user")} gave up jobs in A only, ${count(leave)} in B only. ` : "";
    setText(
      this.summary,
      compared.length
        ? `${staying}${plural(better, "user")} better off in B, ${count(worse)} worse off, ${count(compared.length - better - worse)} the same. Click a user to choose them, and again to open them.`
        : "",
    );
    this.table.chosen = (row) => row.user === this.app.state.user;
    this.table.setRows(rows);
  }

  /** The table as a CSV file, made here: the server has only the two runs. */
  file() {
    const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
    const lines = [
      "user,name,measure,a,b,difference",
      ...this.table.ordered.map((row) =>
        [row.user, this.app.who(row.user), this.measure, row.a, row.b, row.difference].map(quoted).join(","),
      ),
    ];
    const bytes = new TextEncoder().encode(`${lines.join("\n")}\n`);
    return {
      name: `differences-${this.measure}.csv`,
      mime: "text/csv",
      data: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")),
    };
  }

  chosen() {
    this.table.setChosen((row) => row.user === this.app.state.user);
  }
}
