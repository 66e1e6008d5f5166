/** Change a user from here on: think times, dependencies, behaviour; go on as a second run. */

import { button, el, setHidden, setText } from "./dom.js";
import { duration } from "./clock.js";
import { unpack } from "./connection.js";
import { Panel } from "./panel.js";

/** Seconds of "600", "10 min", "1.5 h", "2 days"; null if it is none of these. */
export function secondsOf(text) {
  const found = /^\s*([\d.]+)\s*(s|sec|m|min|h|hours?|d|days?|w|weeks?)?\s*$/i.exec(text);
  if (!found || !Number.isFinite(Number(found[1]))) return null;
  return Math.round(Number(found[1]) * { s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[(found[2] ?? "s")[0].toLowerCase()]);
}

export class EditPanel extends Panel {
  constructor(app) {
    super(app, 0, { name: "user", title: "Change this user from here on", kinds: [], wide: true, id: "edit", saves: "edit" });
    this.behaviour = el("select", { id: "edit-behaviour" });
    this.behaviour.addEventListener("change", () => {
      if (this.behaviour.value) app.addEdit({ user: app.state.user, kind: "behaviour", value: this.behaviour.value });
    });
    this.unit = el("input", { id: "edit-unit", type: "text", inputmode: "numeric", size: "7", autocomplete: "off" });
    this.unit.addEventListener("change", () => app.chooseUnit(this.unit.value.trim() === "" ? null : Number(this.unit.value)));
    this.unitLabel = el("label", { for: "edit-unit" });
    this.edges = el("div", { class: "edges" });
    this.afterUnit = el("input", { id: "edit-after", type: "text", inputmode: "numeric", size: "7", autocomplete: "off" });
    this.think = el("input", { id: "edit-think", type: "text", size: "8", value: "1 h", autocomplete: "off" });
    this.adder = el(
      "form",
      {
        class: "line",
        on: {
          submit: (event) => {
            event.preventDefault();
            this.addEdge();
          },
        },
      },
      el("label", { for: "edit-after", text: "Also wait for" }),
      this.afterUnit,
      el("label", { for: "edit-think", text: "think time" }),
      this.think,
      el("button", { text: "Add dependency" }),
    );
    this.problem = el("p", { class: "error", role: "alert", hidden: true });
    this.list = el("ul", { class: "pending" });
    this.go = button("Go on from here as a second run", () => app.goOn(), { class: "primary" });
    this.cannot = el("p", {
      class: "about",
      text: "This user cannot be changed: only users of a live run whose graph or behaviour is simulated can.",
    });
    this.inside = el(
      "div",
      { class: "editor" },
      el(
        "div",
        { class: "line" },
        el("label", { for: "edit-behaviour", text: "Behaviour" }),
        this.behaviour,
        this.unitLabel,
        this.unit,
      ),
      this.edges,
      this.adder,
      this.problem,
      this.list,
      el("div", { class: "line" }, this.go),
    );
    this.body.append(this.cannot, this.inside);
  }

  draw(data) {
    const can = Boolean(data.can_change) && !this.app.runs[0]?.played_back;
    setHidden(this.cannot, can);
    setHidden(this.inside, !can);
    const { app } = this;
    this.setTitle(`Change ${app.whoWords(app.state.user)} from here on`);
    const graph = data.graph ?? {};
    this.kind = graph.kind === "batch" ? "batch" : "session";
    this.units = unpack(graph.unit);
    this.befores = unpack(graph.before);
    this.afters = unpack(graph.after);
    this.thinks = unpack(graph.think);
    setText(this.unitLabel, this.kind === "batch" ? "Batch" : "Session");
    const choices = [...new Set([data.behaviour, ...(app.runs[0]?.users_can_change ?? [])].filter(Boolean))];
    const key = choices.join();
    if (this.choicesKey !== key) {
      this.choicesKey = key;
      this.behaviour.replaceChildren(
        ...choices.map((choice, place) => el("option", { value: place ? choice : "", text: choice })),
      );
    }
    const edited = app.pending.find((edit) => edit.user === app.state.user && edit.kind === "behaviour");
    const value = edited?.value ?? "";
    if (document.activeElement !== this.behaviour)
      this.behaviour.value = [...this.behaviour.options].some((one) => one.value === value) ? value : "";
    this.chosen();
  }

  chosen() {
    const { app } = this;
    if (document.activeElement !== this.unit) this.unit.value = app.unit ?? "";
    const place = app.unit === null ? -1 : (this.units ?? []).indexOf(app.unit);
    setHidden(this.adder, place < 0);
    const key = JSON.stringify([app.unit, app.state.user, place, app.pending, place < 0 ? 0 : this.befores.length]);
    if (key !== this.edgesKey) {
      this.edgesKey = key;
      this.drawEdges(place);
      this.drawPending();
    }
  }

  drawEdges(place) {
    if (place < 0) {
      this.edges.replaceChildren(
        el("p", {
          class: "about",
          text: `Click a ${this.kind ?? "session"} in the graph, or write its number, to change what it waits for.`,
        }),
      );
      return;
    }
    const lines = [];
    for (let edge = 0; edge < this.befores.length; edge++) {
      if (this.afters[edge] !== place && this.befores[edge] !== place) continue;
      lines.push(this.edgeLine(this.units[this.befores[edge]], this.units[this.afters[edge]], this.thinks[edge]));
    }
    this.edges.replaceChildren(
      ...(lines.length
        ? lines.slice(0, 40)
        : [el("p", { class: "about", text: "It waits for nothing, and nothing waits for it." })]),
    );
  }

  edgeLine(before, after, think) {
    const { app } = this;
    const words = `${after} waits for ${before}`;
    const field = el("input", { type: "text", size: "8", "aria-label": `Think time: ${words}`, autocomplete: "off" });
    field.value = think === null || think === undefined || Number.isNaN(think) ? "" : duration(think);
    const { user } = app.state;
    return el(
      "form",
      {
        class: "line",
        on: {
          submit: (event) => {
            event.preventDefault();
            const seconds = this.seconds(field.value);
            if (seconds !== null) app.addEdit({ user, kind: "think_time", before, after, seconds });
          },
        },
      },
      el("span", { class: "edge", text: words }),
      el("span", { text: "think time" }),
      field,
      el("button", { text: "Set", "aria-label": `Set the think time: ${words}` }),
      button("Remove dependency", () => app.addEdit({ user, kind: "remove_edge", before, after }), {
        class: "quiet",
        "aria-label": `Remove: ${words}`,
      }),
    );
  }

  seconds(text) {
    const seconds = secondsOf(text);
    setText(this.problem, seconds === null ? `"${text}" is not a duration; write for example 600, 10 min, 1.5 h or 2 days` : "");
    setHidden(this.problem, seconds !== null);
    return seconds;
  }

  addEdge() {
    const before = Number(this.afterUnit.value);
    if (this.afterUnit.value.trim() === "" || !this.units.includes(before)) {
      setText(this.problem, `There is no ${this.kind} "${this.afterUnit.value}" here`);
      setHidden(this.problem, false);
      return;
    }
    const seconds = this.seconds(this.think.value);
    if (seconds !== null)
      this.app.addEdit({ user: this.app.state.user, kind: "add_edge", before, after: this.app.unit, seconds });
  }

  drawPending() {
    const { app } = this;
    this.list.replaceChildren(
      ...app.pending.map((edit, number) =>
        el(
          "li",
          {},
          app.editWords(edit),
          " ",
          button("Remove", () => app.dropPending(number), { class: "quiet", "aria-label": `Remove: ${app.editWords(edit)}` }),
        ),
      ),
    );
    this.go.disabled = !app.pending.length;
  }
}
