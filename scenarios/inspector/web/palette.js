/** Colours: of users, and of the theme. */

/** Colours that people with colour-blindness tell apart, readable on light and dark. */
const USERS = [
  "#4477aa",
  "#e69f00",
  "#228833",
  "#cc6677",
  "#56b4e9",
  "#aa4499",
  "#999933",
  "#d55e00",
  "#44aa99",
  "#7b6fd0",
  "#ddbb55",
  "#b06a3b",
  "#66a61e",
  "#e78ac3",
  "#6f8fa6",
  "#c0a000",
];

/** The colour of a user: the same in every picture and every run. */
export function colourOfUser(user) {
  if (user < 0) return "#9aa3ad";
  return USERS[(((user * 7) % USERS.length) + USERS.length) % USERS.length];
}

/** Black or white: what can be read on a colour. */
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111" : "#fff";
}

let cached = null;

/** Colours of the theme that is on: variables of the style sheet. */
export function theme() {
  if (cached) return cached;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  cached = {};
  for (const name of [
    "ink",
    "soft",
    "line",
    "grid",
    "surface",
    "accent",
    "use",
    "queue",
    "asked",
    "recorded",
    "now",
    "pale",
    "warn",
  ]) {
    cached[name] = read(name);
  }
  return cached;
}

/** Read the colours again: the theme has changed. */
export function themeChanged() {
  cached = null;
}
