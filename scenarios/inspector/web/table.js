/** Tables: sorted, searched and scrolled in step in both runs; rows can be chosen with mouse or keyboard. */

import { button, debounced, el, setAttribute, setHidden, setText } from "./dom.js";

/** Rows that are made at first, and more of them when one scrolls to the end. */
const ROWS = 60;

/** Sorting and search of each kind of table, shared by both runs. */
const shared = {};

/** Say no more than this often what a search found, ms. */
const WAIT_SEARCH = 120;

export class Table {
  /**
   * @param {Object} options
   * @param {string} options.kind tables of one kind are sorted and searched in step
   * @param {string} options.label accessible name
   * @param {Object[]} options.columns `key`, `text`, `number`, `show(value, row)` words, `value(row)` to sort by,
   *   `cell(row, td)` to draw it otherwise, `wide`
   * @param {function(Object): *} options.keyOf what identifies a row
   * @param {function(Object): void} [options.onPick]
   * @param {boolean} [options.search]
   * @param {string} [options.nothing] words if there are no rows
   * @param {[string, number]} [options.sort] first sorting: key and 1 or -1
   */
  constructor(options) {
    this.options = options;
    this.columns = options.columns;
    this.rows = [];
    this.made = [];
    this.most = ROWS;
    this.chosen = () => false;
    this.shared = shared[options.kind] ??= { sort: options.sort ?? null, search: "", tables: new Set() };
    this.shared.tables.add(this);
    this.head = el("thead");
    this.tbody = el("tbody");
    this.table = el("table", { "aria-label": options.label }, this.head, this.tbody);
    this.nothing = el("p", { class: "nothing", text: options.nothing ?? "Nothing.", hidden: true });
    this.scroller = el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": `${options.label}, scrollable` },
      this.table,
      this.nothing,
    );
    this.found = el("span", { class: "found", role: "status" });
    this.element = el("div", { class: "table" });
    if (options.search) {
      this.field = el("input", {
        type: "search",
        placeholder: "Search",
        "aria-label": `Search ${options.label}`,
        value: this.shared.search,
      });
      this.field.addEventListener(
        "input",
        debounced(() => this.setSearch(this.field.value), WAIT_SEARCH),
      );
      this.element.append(el("div", { class: "search" }, this.field, this.found));
    }
    this.element.append(this.scroller);
    this.makeHead();
    this.scroller.addEventListener("scroll", () => this.grow(), { passive: true });
    this.tbody.addEventListener("click", (event) => this.pick(event.target.closest("tr")));
    this.tbody.addEventListener("keydown", (event) => this.key(event));
  }

  makeHead() {
    this.sorters = new Map();
    const cells = this.columns.map((column) => {
      const sorter = button(column.text, () => this.sortBy(column.key), { title: column.title ?? null });
      const cell = el(
        "th",
        { scope: "col", class: column.number ? "number" : null },
        column.sortable === false ? column.text : sorter,
      );
      this.sorters.set(column.key, cell);
      return cell;
    });
    this.head.replaceChildren(el("tr", {}, ...cells));
  }

  /** Show other columns. */
  setColumns(columns) {
    const key = columns.map((column) => `${column.key} ${column.text}`).join();
    if (this.columnsKey === key) return;
    this.columnsKey = key;
    this.columns = columns;
    this.made = [];
    this.tbody.replaceChildren();
    this.makeHead();
  }

  /** Show rows. */
  setRows(rows) {
    this.rows = rows;
    this.order();
    this.draw();
  }

  /** Mark the rows for which `chosen` is true. */
  setChosen(chosen) {
    this.chosen = chosen;
    this.draw();
  }

  sortBy(key) {
    const column = this.columns.find((one) => one.key === key);
    const [before, direction] = this.shared.sort ?? [];
    const first = column?.number ? -1 : 1;
    if (before !== key) this.shared.sort = [key, first];
    else this.shared.sort = direction === first ? [key, -first] : (this.options.sort ?? null);
    for (const table of this.shared.tables) table.again();
  }

  setSearch(text) {
    this.shared.search = text;
    for (const table of this.shared.tables) {
      if (table.field && table.field !== this.field) table.field.value = text;
      table.again();
    }
  }

  again() {
    this.most = ROWS;
    this.scroller.scrollTop = 0;
    this.order();
    this.draw();
  }

  words(column, row) {
    const value = row[column.key];
    if (column.show) return column.show(value, row) ?? "";
    return value === null || value === undefined ? "" : String(value);
  }

  order() {
    const wanted = this.shared.search.trim().toLowerCase();
    let rows = this.rows;
    if (wanted && this.field) {
      rows = rows.filter((row) => this.columns.some((column) => this.words(column, row).toLowerCase().includes(wanted)));
      setText(this.found, `${rows.length.toLocaleString("en-US")} of ${this.rows.length.toLocaleString("en-US")}`);
    } else setText(this.found, "");
    const [key, direction] = this.shared.sort ?? [];
    const column = this.columns.find((one) => one.key === key);
    if (column) {
      const value = column.value ?? ((row) => row[key]);
      const missing = (one) => one === null || one === undefined || Number.isNaN(one) || one === "";
      rows = [...rows].sort((left, right) => {
        const [one, other] = [value(left), value(right)];
        if (missing(one) || missing(other)) return missing(one) - missing(other);
        if (typeof one === "string") return direction * one.localeCompare(other, "en", { numeric: true });
        return direction * (one - other);
      });
    }
    this.ordered = rows;
  }

  /** Change only what differs. */
  draw() {
    const rows = this.ordered ?? [];
    const size = Math.min(rows.length, this.most);
    const [key, direction] = this.shared.sort ?? [];
    for (const [name, cell] of this.sorters)
      setAttribute(cell, "aria-sort", name === key ? (direction > 0 ? "ascending" : "descending") : null);
    for (let place = 0; place < size; place++) this.drawRow(place, rows[place]);
    while (this.made.length > size) this.made.pop().line.remove();
    setHidden(this.nothing, this.rows.length > 0 && rows.length > 0);
    if (this.rows.length && !rows.length) setText(this.nothing, "Nothing matches the search.");
    else setText(this.nothing, this.options.nothing ?? "Nothing.");
    setHidden(this.table, this.rows.length === 0);
    setAttribute(this.table, "aria-rowcount", rows.length + 1);
    this.keepFocusable();
  }

  drawRow(place, row) {
    let made = this.made[place];
    if (!made) {
      const cells = this.columns.map((column) =>
        el("td", { class: [column.number ? "number" : "", column.wide ? "wide" : ""].filter(Boolean).join(" ") || null }),
      );
      made = { line: el("tr", {}, ...cells), cells };
      this.made[place] = made;
      this.tbody.append(made.line);
    }
    made.row = row;
    this.columns.forEach((column, number) => {
      const words = this.words(column, row);
      if (column.cell) column.cell(row, made.cells[number], words);
      else setText(made.cells[number], words);
    });
    const chosen = Boolean(this.chosen(row));
    if (made.chosen !== chosen) {
      made.chosen = chosen;
      made.line.classList.toggle("chosen", chosen);
      setAttribute(made.line, "aria-current", chosen ? "true" : null);
    }
    const key = String(this.options.keyOf(row));
    if (made.line.dataset.key !== key) made.line.dataset.key = key;
  }

  /** Exactly one row can be reached with the tab key: the chosen one, or the first. */
  keepFocusable() {
    if (!this.options.onPick) return;
    const focused = this.made.find((made) => made.line === document.activeElement);
    const one = focused ?? this.made.find((made) => made.chosen) ?? this.made[0];
    for (const made of this.made) {
      const index = made === one ? "0" : "-1";
      if (made.line.getAttribute("tabindex") !== index) made.line.setAttribute("tabindex", index);
    }
  }

  grow() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    if (scrollTop + clientHeight < scrollHeight - 200 || this.most >= (this.ordered ?? []).length) return;
    this.most += ROWS;
    this.draw();
  }

  pick(line) {
    const made = this.made.find((one) => one.line === line);
    if (made && this.options.onPick) this.options.onPick(made.row);
  }

  key(event) {
    const line = event.target.closest("tr");
    const place = this.made.findIndex((made) => made.line === line);
    if (place < 0 || !this.options.onPick) return;
    const places = {
      ArrowDown: place + 1,
      ArrowUp: place - 1,
      Home: 0,
      End: this.made.length - 1,
      PageDown: place + 10,
      PageUp: place - 10,
    };
    if (event.key === "Enter" || event.key === " ") this.pick(line);
    else if (event.key in places) {
      const next = this.made[Math.min(Math.max(places[event.key], 0), this.made.length - 1)];
      for (const made of this.made) made.line.setAttribute("tabindex", made === next ? "0" : "-1");
      next.line.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Bring the chosen row into view. */
  reveal() {
    const found = (this.ordered ?? []).findIndex((row) => this.chosen(row));
    if (found < 0) return;
    if (found >= this.most) {
      this.most = found + 20;
      this.draw();
    }
    const { line } = this.made[found];
    const top = line.offsetTop - this.head.offsetHeight;
    if (top < this.scroller.scrollTop || top > this.scroller.scrollTop + this.scroller.clientHeight - 60)
      this.scroller.scrollTop = Math.max(0, top - 60);
  }

  /** Forget the table: its run is gone. */
  remove() {
    this.shared.tables.delete(this);
  }
}
