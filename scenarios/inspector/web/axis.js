/** The time axis that all charts share. */

/** Shortest time range, s. */
const SHORTEST = 60;

/** All charts of the page. */
export const charts = new Set();

/** The visible time range of all charts with a time axis. */
export const timeAxis = {
  from: 0,
  to: 86400,
  clock: null,
  now: null,
  bounds: [0, 86400],
  /** Called with (from, to) when a person has panned or zoomed. */
  onMove: () => {},

  /** Show a range in all charts. */
  set(from, to) {
    if (this.from === from && this.to === to) return;
    this.from = from;
    this.to = to;
    for (const chart of charts) if (chart.time) chart.followTime();
  },

  /** Pan or zoom by hand, within the run. */
  move(from, to) {
    const [first, last] = this.bounds;
    const room = 0.1 * (last - first) + 3600;
    const length = Math.min(Math.max(to - from, SHORTEST), last - first + 2 * room);
    if (to - from < SHORTEST) from = (from + to - length) / 2;
    from = Math.min(Math.max(from, first - room), last + room - length);
    this.set(from, from + length);
    this.onMove(from, from + length);
  },

  /** Mark the current time in all charts. */
  setNow(now) {
    if (now === this.now) return;
    this.now = now;
    for (const chart of charts) if (chart.time) chart.nowLine.location = now;
  },

  /** Write the ticks again: another clock. */
  setClock(clock) {
    this.clock = clock;
    for (const chart of charts) if (chart.time) chart.followTime();
  },
};
