/** The tooltip of all charts. */

import { el } from "./dom.js";

const tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });

/** Show lines of words near a point of the window; nothing hides them. */
export function showTip(content, x, y) {
  if (!content) {
    tip.hidden = true;
    return;
  }
  if (!tip.isConnected) document.body.append(tip);
  tip.replaceChildren(
    ...[content].flat().map((line, place) => (typeof line === "string" ? el(place ? "div" : "strong", { text: line }) : line)),
  );
  tip.hidden = false;
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.max(4, x + 14 + width > innerWidth ? x - width - 10 : x + 14)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - height - 6))}px`;
}
