/** Who slows whom: processor-hours that users wait because of others. */

import { el, setHidden, setText } from "./dom.js";
import { count } from "./clock.js";
import { Panel } from "./panel.js";
import { Table } from "./table.js";
import { barCell } from "./differences.js";
import { userCell } from "./users.js";

/** Users named for each direction. */
const MOST = 12;

const hours = (value) => (value === null || value === undefined ? "" : value >= 100 ? count(value) : value.toFixed(value < 1 ? 3 : 1));

export class DelaysPanel extends Panel {
  constructor(app, run) {
    super(app, run, { name: "delays", title: "Who slows whom", wide: true });
    this.words = el("div", { class: "both" });
    this.by = el("div", { class: "bars" });
    this.of = el("div", { class: "bars" });
    this.byTitle = el("h4", {});
    this.ofTitle = el("h4", {});
    this.words.append(el("div", {}, this.byTitle, this.by), el("div", {}, this.ofTitle, this.of));
    this.most = 1;
    const person = (key, text) => ({
      key,
      text,
      show: (user) => app.who(user),
      value: (row) => app.nameOrNumber(row[key]),
      cell: (row, cell, words) => userCell(app)({ user: row[key] }, cell, words),
    });
    this.table = new Table({
      kind: "delays",
      label: `Who slows whom in run ${"AB"[run]}`,
      columns: [
        person("by", "This user"),
        person("delayed", "slowed down"),
        { key: "hours", text: "by, processor-hours", number: true, show: hours },
        {
          key: "bar",
          text: "Share",
          sortable: false,
          wide: true,
          show: () => "",
          cell: barCell(
            (row) => row.hours,
            () => this.most,
          ),
        },
        { key: "jobs", text: "in jobs", number: true, show: count },
      ],
      keyOf: (row) => `${row.by}-${row.delayed}`,
      onPick: (row) => app.choose({ user: row.delayed < 0 ? row.by : row.delayed, job: null }),
      search: true,
      sort: ["hours", -1],
      nothing: "Nobody has slowed anybody down yet.",
    });
    this.body.append(this.words, this.table.element);
  }

  draw(data) {
    this.rows = data.rows ?? [];
    this.most = Math.max(1e-9, ...this.rows.map((row) => row.hours));
    const nobody = data.nobody ? ` ${hours(data.nobody)} of it because of no other user.` : "";
    this.setAbout(
      data.total === undefined ? "" : `Processor-hours that users waited from ${this.app.clock.words(data.since)} until now: ${hours(data.total)}.${nobody}`,
    );
    this.table.chosen = (row) => this.isChosen(row);
    this.table.setRows(this.rows);
    this.drawChosen();
  }

  isChosen(row) {
    const { user } = this.app.state;
    return user !== null && (row.by === user || row.delayed === user);
  }

  drawChosen() {
    const { user } = this.app.state;
    setHidden(this.words, user === null);
    if (user === null || !this.rows) return;
    const name = this.app.whoWords(user, true);
    setText(this.byTitle, `Who slowed ${this.app.whoWords(user)} down`);
    setText(this.ofTitle, `Whom ${this.app.whoWords(user)} slowed down`);
    this.bars(
      this.by,
      this.rows.filter((row) => row.delayed === user),
      "by",
      `${name} waited for nobody.`,
    );
    this.bars(
      this.of,
      this.rows.filter((row) => row.by === user),
      "delayed",
      `${name} slowed nobody down.`,
    );
  }

  bars(place, rows, key, nothing) {
    const most = Math.max(...rows.map((row) => row.hours), 1e-9);
    const { app } = this;
    place.replaceChildren(
      ...rows.slice(0, MOST).map((row) => {
        const bar = el("span", { class: "bar" });
        bar.style.width = `${(100 * row.hours) / most}%`;
        bar.style.background = app.colourOf(row[key]);
        const other = row[key];
        return el(
          "button",
          { type: "button", class: "barline", on: { click: () => other >= 0 && app.choose({ user: other, job: null }) } },
          el("span", { class: "who", text: other === app.state.user ? "own jobs" : app.who(other) }),
          el("span", { class: "track" }, bar),
          el("span", { class: "value", text: hours(row.hours) }),
        );
      }),
    );
    if (!rows.length) place.append(el("p", { class: "about", text: nothing }));
  }

  chosen() {
    this.table.setChosen((row) => this.isChosen(row));
    this.drawChosen();
  }
}
