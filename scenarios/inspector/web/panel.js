/** A panel: heading, buttons to save and to fold it, and a body. */

import { button, el, setAttribute, setHidden, setText } from "./dom.js";

/** Base of all panels. */
export class Panel {
  /**
   * @param {Object} app the page
   * @param {number} run 0 for run A, 1 for run B
   * @param {Object} options
   * @param {string} options.name name of the panel in the protocol
   * @param {string} options.title
   * @param {string[]} [options.kinds] files it can be saved as
   * @param {boolean} [options.wide] whether it takes the whole width of the page
   */
  constructor(app, run, { name, title, kinds = ["csv"], wide = false, id = null, saves = null }) {
    this.app = app;
    this.run = run;
    this.name = name;
    this.saves = saves ?? name;
    this.id = id ?? `${name}-${"ab"[run]}`;
    this.heading = el("h3", { id: `${this.id}-title`, text: title });
    this.badge = el("span", { id: `${this.id}-run`, class: "badge", text: "AB"[run], hidden: true });
    this.fold = button("", () => app.toggle(this.saves), { class: "fold quiet" });
    this.about = el("p", { class: "about", hidden: true });
    this.body = el("div", { class: "body" });
    this.error = el("p", { class: "error", hidden: true });
    this.savers = el(
      "span",
      { class: "savers" },
      ...kinds.map((kind) =>
        button(kind.toUpperCase(), () => app.save(this, kind), {
          class: "quiet",
          "aria-label": `Save ${title} as ${kind.toUpperCase()}`,
          title: `Save as ${kind.toUpperCase()}`,
        }),
      ),
    );
    this.element = el(
      "section",
      {
        id: this.id,
        class: `panel${wide ? " wide" : ""}`,
        "aria-labelledby": `${this.id}-title`,
        data: { run: "ab"[run], panel: this.saves },
      },
      el("header", {}, this.badge, this.heading, this.savers, this.fold),
      this.error,
      this.about,
      this.body,
    );
    this.folded(false);
  }

  /** Show another title. */
  setTitle(text) {
    setText(this.heading, text);
  }

  /** Show a line under the title; empty hides it. */
  setAbout(text) {
    setText(this.about, text ?? "");
    setHidden(this.about, !text || this.isFolded);
  }

  /** Fold or unfold the panel. */
  folded(folded) {
    if (this.isFolded === folded) return;
    this.isFolded = folded;
    this.body.hidden = folded;
    this.savers.hidden = folded;
    this.fold.textContent = folded ? "Show" : "Hide";
    this.fold.setAttribute("aria-expanded", String(!folded));
    this.fold.setAttribute("aria-label", `${folded ? "Show" : "Hide"} ${this.heading.textContent}`);
    if (folded) this.about.hidden = true;
  }

  /** Whether the panel shows anything at all now. */
  get wanted() {
    return !this.isFolded;
  }

  /** Draw the answer of the server; an error or a missing answer leaves what was there. */
  update(data, context) {
    const named = context.two && !this.both;
    setHidden(this.badge, !named);
    setAttribute(this.element, "aria-labelledby", named ? `${this.id}-run ${this.id}-title` : `${this.id}-title`);
    if (!data) return;
    setHidden(this.error, !data.error);
    if (data.error) {
      setText(this.error, data.error);
      return;
    }
    try {
      this.draw(data, context);
    } catch (problem) {
      console.error(this.id, problem);
      setText(this.error, `This panel could not be drawn: ${problem.message}`);
      setHidden(this.error, false);
    }
  }

  /** Draw the data; the panels do it. */
  draw() {}
}
