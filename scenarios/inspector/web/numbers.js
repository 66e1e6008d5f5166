/** The strip of numbers: until now, of the whole run, and the difference of two runs. */

import { button, el, setHidden, setText } from "./dom.js";
import { duration } from "./clock.js";

/** Numbers of a moment: at the end of a run they say little. */
const OF_A_MOMENT = /running|waiting|asked|now/;

/** Seeds that "repeat" uses. */
const SEEDS = 5;

/** Units that large numbers have instead, 1,000 times as large, and from where. */
const LARGER = { kWh: "MWh", kg: "t", kW: "MW" };
const LARGE = 10000;

/** A number in words, without a sign. */
function plainWords(value, unit) {
  if (unit === "s") return duration(value);
  if (LARGER[unit] && Math.abs(value) >= LARGE) return plainWords(value / 1000, LARGER[unit]);
  const digits = unit === "%" || unit === "percentage points" || Math.abs(value) < 100 ? 1 : 0;
  const noun = value === 1 ? unit.replace(/s$/, "") : unit;
  return `${value.toLocaleString("en-US", { maximumFractionDigits: digits })}${noun ? ` ${noun}` : ""}`;
}

const known = (value) => Boolean(value) && value.value !== null && value.value !== undefined;

/** A difference in words, with its sign. */
export function differenceWords(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  const words = plainWords(Math.abs(value), unit === "%" ? "percentage points" : unit);
  if (/^0(\.0)?( |$)/.test(words)) return "the same";
  return `${value > 0 ? "+" : "\u2212"}${words}`;
}

/** "better", "worse" or "" for a difference. */
export function judged(difference, better) {
  if (!difference || !better) return "";
  return difference < 0 === (better === "lower") ? "better" : "worse";
}

export class Numbers {
  constructor(app, place) {
    this.app = app;
    this.cards = new Map();
    this.list = el("dl", { class: "cards" });
    this.repeat = button(`Repeat with ${SEEDS} seeds`, () => this.askSeeds(), {
      class: "quiet",
      title: "Runs all runs with other seeds in the background and shows how far the numbers vary",
    });
    this.progress = el("span", { class: "about" });
    this.note = el("span", { class: "about", text: "" });
    place.append(
      el("h2", { class: "hidden", text: "Numbers until now" }),
      el("div", { class: "strip" }, this.list, el("div", { class: "aside" }, this.repeat, this.progress, this.note)),
    );
    this.seeds = null;
  }

  askSeeds() {
    const running = this.seeds && this.seeds.done < this.seeds.of;
    this.app.askSeeds(running ? 0 : SEEDS);
    if (running) this.showSeeds(null);
  }

  /** What the server found with other seeds until now; null forgets it. */
  showSeeds(message) {
    this.seeds = message;
    const running = message && message.done < message.of;
    setText(this.repeat, running ? "Stop" : `Repeat with ${SEEDS} seeds`);
    setText(
      this.progress,
      !message
        ? ""
        : running
          ? `${message.done} of ${message.of} runs finished`
          : this.chance()
            ? "Mean and 95 % interval over the seeds, whole run"
            : `The same with each of ${message.runs[0][Object.keys(message.runs[0])[0]]?.n} seeds: nothing in ${this.app.two ? "these runs" : "this run"} is drawn at random.`,
    );
    if (this.last) this.draw(this.last.runs, this.last.context);
  }

  /** Whether seeds made any difference. */
  chance() {
    return this.seeds.runs.some((run) => Object.values(run).some((one) => one.half > 0));
  }

  /** @param {Object[]} runs answers of the runs, each with `numbers` */
  draw(runs, context) {
    this.last = { runs, context };
    setHidden(this.repeat, !context.seeds);
    const lists = runs.map((run) => run?.numbers?.values ?? []);
    const wholes = context.wholes;
    setText(
      this.note,
      !wholes.some(Boolean) ? "" : context.two ? "Bold: until now. Small: the whole run." : "Bold: until now.",
    );
    // Of several runs, only some may have a number, such as energy.
    const every = new Map(lists.flat().map((one) => [one.key, one]));
    const keys = [...every.values()].filter((one) =>
      lists.some((list) => list.some((other) => other.key === one.key && other.value !== null && other.value !== undefined)),
    );
    const seen = new Set();
    for (const one of keys) {
      seen.add(one.key);
      this.drawCard(
        one,
        lists.map((list) => list.find((other) => other.key === one.key)),
        wholes.map((list) => (OF_A_MOMENT.test(one.key) ? null : list?.values?.find((other) => other.key === one.key))),
        context.two,
      );
    }
    [...seen].forEach((key, place) => {
      const { element } = this.cards.get(key);
      if (this.list.children[place] !== element) this.list.insertBefore(element, this.list.children[place] ?? null);
    });
    for (const [key, card] of this.cards) {
      if (!seen.has(key)) {
        card.element.remove();
        this.cards.delete(key);
      }
    }
  }

  drawCard(one, values, wholes, two) {
    let card = this.cards.get(one.key);
    if (!card || card.two !== two) {
      card?.element.remove();
      card = { two, lines: [] };
      card.element = el("div", { class: "card", data: { key: one.key } }, el("dt", { text: one.words }));
      for (const name of two ? ["A", "B", "B \u2212 A"] : [""]) {
        const line = {
          value: el("span", { class: "value" }),
          small: el("span", { class: "small" }),
          seeds: el("span", { class: "small seeds" }),
        };
        line.element = el(
          "dd",
          { class: name.length > 1 ? "difference" : null },
          name ? el("span", { class: "run", text: name }) : null,
          line.value,
          line.small,
          line.seeds,
        );
        card.lines.push(line);
        card.element.append(line.element);
      }
      this.cards.set(one.key, card);
      this.list.append(card.element);
    }
    values.forEach((value, run) => {
      const line = card.lines[run];
      if (!line) return;
      setText(line.value, value?.text || "\u2013");
      setText(line.small, known(wholes[run]) ? `${two ? "" : "whole run "}${wholes[run].text}` : "");
      line.small.title = "The whole run";
      setText(line.seeds, this.interval(this.seeds?.runs?.[run], one));
    });
    if (!two || !card.lines[2]) return;
    const line = card.lines[2];
    const [left, right] = values;
    this.difference(line.value, values, one, true);
    this.difference(line.small, wholes, one, false);
    const same = left?.unit === right?.unit;
    setText(line.seeds, same ? this.interval(this.seeds?.difference, one, true) : "");
  }

  difference(node, [left, right], one, judge) {
    if (!known(left) || !known(right) || left.unit !== right.unit) {
      setText(node, "");
      node.className = judge ? "value" : "small";
      return;
    }
    const value = right.value - left.value;
    const words = differenceWords(value, one.unit);
    const verdict = words === "the same" ? "" : judged(value, one.better);
    setText(node, verdict ? `${words} ${verdict}` : words);
    node.className = `${judge ? "value" : "small"} ${verdict}`;
  }

  /** A number over the seeds, in words. */
  interval(found, { key, unit }, signed = false) {
    const one = found?.[key];
    if (!one || one.mean === null || one.mean === undefined || OF_A_MOMENT.test(key)) return "";
    if (one.n > 1 && !this.chance()) return "";
    const mean = signed ? differenceWords(one.mean, unit) : plainWords(one.mean, unit);
    const words = `${one.n} seed${one.n === 1 ? "" : "s"}: ${mean}`;
    if (one.half === null || one.half === undefined || Number.isNaN(one.half)) return words;
    return one.half ? `${words} \u00b1 ${plainWords(one.half, unit)}` : `${words} with each`;
  }
}
