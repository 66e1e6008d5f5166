/** Keys that work everywhere on the page. */

import { DAY, HOUR } from "./clock.js";

/** Listen to the keys of the page; fields, tables and pictures keep their own. */
export function listenToKeys(app) {
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (target.closest("input, select, textarea, dialog[open]")) return;
    const hour = event.shiftKey ? DAY : HOUR;
    const actions = {
      k: () => app.togglePlay(),
      ArrowLeft: () => app.step(-hour),
      ArrowRight: () => app.step(hour),
      Home: () => app.goTo(app.first),
      End: () => app.goToEnd(),
      b: () => app.goToBusiest(),
      n: () => app.goToEvent(),
      "?": () => app.transport.showHelp(),
      Escape: () => app.choose({ user: null, job: null }),
    };
    ["cluster", "users", "user", "delays", "forecast", "differences"].forEach((tab, place) => {
      actions[place + 1] = () => app.setTab(tab);
    });
    if (!target.closest("button, summary, a, tr")) actions[" "] = () => app.togglePlay();
    if (target.closest(".scroller")) for (const key of ["ArrowLeft", "ArrowRight", "Home", "End", " "]) delete actions[key];
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
