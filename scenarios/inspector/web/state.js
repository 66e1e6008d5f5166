/** What the page shows, kept in its address. */

const DAY = 86400;

/** Names of the tabs. */
export const TABS = ["cluster", "users", "user", "delays", "forecast", "differences"];

/** Spans in days; 0 is the whole run. */
export const SPANS = [1, 7, 28, 0];

/** Futures that may be simulated, and how many days far. */
export const FUTURES = [20, 50, 200];
export const HORIZONS = [1, 7];

/** Jobs that one would submit, in an address: "1x64x21600" is one of 64 processors for 6 h. */
const jobsOf = (text) =>
  (text ?? "")
    .split(",")
    .map((one) => /^(\d{1,4})x(\d{1,9})x(\d{1,9})$/.exec(one)?.slice(1).map(Number))
    .filter((one) => one?.every((value) => value > 0) && one[0] <= 1000 && one[1] <= 1e8 && one[2] <= 3660 * DAY)
    .slice(0, 2)
    .map(([count, processors, requested]) => ({ count, processors, requested }));

/** Furthest second of an address: three hundred years. */
const LAST = 1e10;

/** Largest number of a user or job. */
const MOST = Number.MAX_SAFE_INTEGER;

/** A whole number between two others, null for anything else: an address may hold nonsense. */
const number = (text, least = -LAST, most = LAST) => {
  const value = text === null || text === "" ? NaN : Math.round(Number(text));
  return Number.isFinite(value) ? Math.min(Math.max(value, least), most) : null;
};

/** Span at first. */
const SPAN = 7;

/** The state that an address describes. */
export function stateOf(query) {
  const given = new URLSearchParams(query);
  const state = {
    at: number(given.get("at"), 0),
    tab: TABS.includes(given.get("tab")) ? given.get("tab") : "cluster",
    user: number(given.get("user"), -MOST, MOST),
    /** The user as the address says, by name or number, until the names are known. */
    userWords: given.get("user"),
    job: number(given.get("job"), -MOST, MOST),
    from: number(given.get("from")),
    to: number(given.get("to")),
    span: given.has("span") && SPANS.includes(number(given.get("span"))) ? number(given.get("span")) : SPAN,
    spanGiven: given.has("span") || given.has("at"),
    two: given.get("two") === "1",
    a: {},
    b: {},
    edits: [],
    since: number(given.get("since"), 0),
    hidden: new Set((given.get("hidden") ?? "").split(",").filter(Boolean)),
    theme: ["light", "dark"].includes(given.get("theme")) ? given.get("theme") : "auto",
    forecast: {
      futures: FUTURES.find((one) => one === number(given.get("futures"))) ?? 50,
      days: HORIZONS.find((one) => one === number(given.get("days"))) ?? 1,
      jobs: jobsOf(given.get("jobs")),
    },
    speed: number(given.get("speed"), 1, 604800) ?? 3600,
  };
  if (state.from === null || state.to === null || state.from >= state.to) state.from = state.to = null;
  for (const [key, value] of given) {
    if (key.startsWith("a.")) state.a[key.slice(2)] = value;
    if (key.startsWith("b.")) state.b[key.slice(2)] = value;
  }
  try {
    const edits = JSON.parse(given.get("edits") ?? "[]");
    if (Array.isArray(edits)) state.edits = edits;
  } catch {
    // An address that was cut off: no edits.
  }
  if (!state.edits.length || !state.two || state.since === null) Object.assign(state, { edits: [], since: null });
  return state;
}

/** The query of the address that describes a state; `wordsOf` gives the name or number of a user. */
export function queryOf(state, wordsOf = String) {
  const parts = new URLSearchParams();
  const put = (name, value) => {
    if (value !== null && value !== undefined && value !== "") parts.set(name, String(value));
  };
  put("at", state.at);
  if (state.tab !== "cluster") put("tab", state.tab);
  put("user", state.user === null ? state.userWords : wordsOf(state.user));
  put("job", state.job);
  if (state.from !== null) {
    put("from", Math.round(state.from));
    put("to", Math.round(state.to));
  } else if (state.span !== SPAN) put("span", state.span);
  if (state.two) put("two", 1);
  for (const run of ["a", "b"]) {
    for (const [name, value] of Object.entries(state[run])) put(`${run}.${name}`, value);
  }
  if (state.edits.length) put("edits", JSON.stringify(state.edits));
  if (state.since !== null) put("since", state.since);
  put("hidden", [...state.hidden].join(","));
  if (state.theme !== "auto") put("theme", state.theme);
  const { futures, days, jobs } = state.forecast;
  if (futures !== 50) put("futures", futures);
  if (days !== 1) put("days", days);
  put("jobs", jobs.map((job) => `${job.count}x${job.processors}x${job.requested}`).join(","));
  if (state.speed !== 3600) put("speed", state.speed);
  return parts.toString();
}

/** The time range around a moment that a span shows: most of it before, some of it after. */
export function rangeOfSpan(span, at, first, last) {
  if (!span) return [first, Math.max(last, first + 60)];
  const length = span * DAY;
  let from = at - 0.75 * length;
  if (from < first) from = first;
  return [from, from + length];
}

/** Run settings that `open` sends. */
export function runsOf(state, subjects) {
  const given = (run) => Object.keys(state[run]).length > 0;
  if (subjects > 1) return given("a") || given("b") ? [{ settings: state.a }, { settings: state.b }] : [];
  const runs = [{ settings: state.a }];
  if (state.two && state.since !== null) runs.push({ settings: state.b, since: state.since, edits: state.edits });
  else if (state.two) runs.push({ settings: state.b });
  return runs;
}
