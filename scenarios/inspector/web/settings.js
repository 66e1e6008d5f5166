/** Settings of each run, what reading assumed, and why a run could not begin. */

import { button, el, setHidden, setText } from "./dom.js";
import { plural } from "./clock.js";

export class Settings {
  constructor(app, place) {
    this.app = app;
    this.place = place;
    this.boxes = [];
  }

  /** Show as many runs as there are. */
  draw(runs) {
    while (this.boxes.length > runs.length) this.boxes.pop().element.remove();
    runs.forEach((run, place) => {
      if (!run) return;
      if (!this.boxes[place]) {
        this.boxes[place] = this.makeBox(place);
        this.place.append(this.boxes[place].element);
      }
      this.fill(this.boxes[place], run, place, runs.length > 1);
    });
    this.place.classList.toggle("two", runs.length > 1);
  }

  makeBox(place) {
    const name = "ab"[place];
    const box = {};
    box.badge = el("span", { class: "badge", text: "AB"[place] });
    box.title = el("h2", {});
    box.hint = el("span", { class: "hint" });
    box.fields = el("div", { class: "fields" });
    box.error = el("p", { class: "error", role: "alert", hidden: true });
    box.apply = button("Apply", () => this.apply(place), {
      class: "primary",
      id: `apply-${name}`,
      "aria-label": `Apply the settings of run ${"AB"[place]}`,
    });
    box.plain = button("As the command said", () => this.app.changeSettings(place, {}), { class: "quiet" });
    box.notes = el("ul", {});
    box.noNotes = el("p", { class: "about", text: "Nothing." });
    box.form = el(
      "form",
      {
        on: {
          submit: (event) => {
            event.preventDefault();
            this.apply(place);
          },
        },
      },
      box.fields,
      el("div", { class: "under" }, box.apply, box.plain),
    );
    box.playedBack = el("p", { class: "about", text: "A finished run: it is played back as it was." });
    box.edits = el("div", { class: "edits" });
    box.details = el(
      "details",
      { id: `settings-${name}` },
      el("summary", {}, box.badge, box.title, box.hint),
      el(
        "div",
        { class: "inside" },
        el("div", {}, el("h3", { text: "Settings" }), box.playedBack, box.form, box.error, box.edits),
        el("div", { class: "notes" }, el("h3", { text: "What reading assumed, repaired or dropped" }), box.notes, box.noNotes),
      ),
    );
    box.element = el("div", { class: "settings", data: { run: name } }, box.details);
    return box;
  }

  fill(box, run, place, two) {
    setHidden(box.badge, !two);
    setText(box.title, run.label);
    const notes = run.notes ?? [];
    const edits = place === 1 ? this.app.state.edits.length : 0;
    setText(
      box.hint,
      [
        edits ? plural(edits, "change") : "",
        run.played_back ? "played back" : "settings",
        notes.length ? plural(notes.length, "note") : "",
      ]
        .filter(Boolean)
        .join(", "),
    );
    box.notes.replaceChildren(...notes.map((note) => el("li", { text: note })));
    setHidden(box.noNotes, notes.length > 0);
    const controls = run.controls ?? [];
    setHidden(box.form, !controls.length);
    setHidden(box.playedBack, controls.length > 0);
    const key = JSON.stringify([controls, run.settings]);
    if (box.key !== key) {
      box.key = key;
      box.inputs = new Map();
      box.fields.replaceChildren(...controls.map((control) => this.field(box, control, run, place)));
    }
    setHidden(box.plain, !Object.keys(run.settings ?? {}).length);
    this.showEdits(box, place);
  }

  field(box, control, run, place) {
    const value = String(run.settings?.[control.name] ?? control.value ?? "");
    const id = `setting-${"ab"[place]}-${control.name}`;
    let input;
    if (control.choices?.length) {
      const choices = [...new Set([value, ...control.choices.map(String)])];
      input = el("select", { id }, ...choices.map((choice) => el("option", { value: choice, text: choice })));
    } else input = el("input", { id, type: "text", autocomplete: "off", spellcheck: "false" });
    input.value = value;
    box.inputs.set(control.name, { input, value });
    const error = el("span", { class: "error", id: `${id}-error`, hidden: true });
    return el(
      "div",
      { class: "field", data: { name: control.name } },
      el("label", { for: id, text: control.label ?? control.name }),
      input,
      error,
    );
  }

  /** Edits of run B that branch off run A. */
  showEdits(box, place) {
    const { app } = this;
    const edits = place === 1 ? app.state.edits : [];
    if (!edits.length) {
      box.edits.replaceChildren();
      return;
    }
    box.edits.replaceChildren(
      el("h4", { text: `Run A until ${app.clock.words(app.state.since)}, then with ${plural(edits.length, "change")}` }),
      el(
        "ul",
        {},
        ...edits.map((edit, number) =>
          el(
            "li",
            {},
            app.editWords(edit),
            " ",
            button("Remove", () => app.removeEdit(number), { class: "quiet", "aria-label": `Remove: ${app.editWords(edit)}` }),
          ),
        ),
      ),
    );
  }

  apply(place) {
    const box = this.boxes[place];
    const settings = { ...this.app.runs[place].settings };
    for (const [name, { input, value }] of box.inputs) if (input.value !== value) settings[name] = input.value;
    this.app.changeSettings(place, settings);
  }

  /** Forget why runs could not begin. */
  clear() {
    this.boxes.forEach((_, place) => this.fail(place, null));
  }

  /** Show why a run could not begin, next to the field that it names. */
  fail(place, line) {
    const box = this.boxes[place] ?? this.boxes[0];
    if (!box) return;
    for (const field of box.fields.querySelectorAll(".field")) {
      const names = [field.dataset.name, field.querySelector("label").textContent].map((name) => name.toLowerCase());
      const own = Boolean(line) && names.some((name) => line.toLowerCase().startsWith(name));
      const error = field.querySelector(".error");
      setText(error, own ? line : "");
      setHidden(error, !own);
      const input = field.querySelector("input, select");
      if (own) {
        input.setAttribute("aria-invalid", "true");
        input.setAttribute("aria-describedby", error.id);
      } else {
        input.removeAttribute("aria-invalid");
        input.removeAttribute("aria-describedby");
      }
    }
    setText(box.error, line ?? "");
    setHidden(box.error, !line || Boolean(box.fields.querySelector('[aria-invalid="true"]')));
    if (line) box.details.open = true;
  }
}
