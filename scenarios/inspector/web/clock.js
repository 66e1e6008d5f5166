/** Local times of the cluster, ticks of time axes, durations in words. */

export const HOUR = 3600;
export const DAY = 86400;
export const WEEK = 604800;

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Unix time of the first Monday, 00:00. */
const FIRST_MONDAY = 4 * DAY;

const two = (value) => String(value).padStart(2, "0");
const floorTo = (value, step) => Math.floor(value / step) * step;

const COUNTS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A count with thousands separators. */
export function count(value) {
  return value === null || value === undefined || Number.isNaN(value) ? "" : COUNTS.format(value);
}

/** A count with its noun: "1 job", "2 jobs". */
export function plural(value, noun) {
  return `${count(value)} ${noun}${Math.round(value) === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}

/** A duration in a readable unit: "35 s", "12.4 min", "3.1 h", "2.5 days". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "";
  const size = Math.abs(seconds);
  if (size < 120) return `${Math.round(seconds)} s`;
  if (size < 2 * HOUR) return `${(seconds / 60).toFixed(1)} min`;
  if (size < 2 * DAY) return `${(seconds / HOUR).toFixed(1)} h`;
  return `${TENTHS.format(seconds / DAY)} days`;
}

/** The clock of a run: seconds since the origin as local times. */
export class Clock {
  /** @param {Object} [given] `unix_start`, `nominal`, `zone`, `offsets` */
  constructor(given = {}) {
    this.start = given.unix_start ?? 978307200;
    this.nominal = given.nominal ?? true;
    this.zone = given.zone ?? "";
    this.offsets = (given.offsets ?? []).map(([from, offset]) => [from ?? -Infinity, offset]);
    this.origin = this.local(0);
  }

  /** The UTC offset at a second. */
  offset(second) {
    let low = 0;
    let high = this.offsets.length - 1;
    if (high < 0) return 0;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsets[middle][0] <= second) low = middle;
      else high = middle - 1;
    }
    return this.offsets[low][1];
  }

  /** Local time at a second, as if it were a Unix time. */
  local(second) {
    return this.start + second + this.offset(second);
  }

  /** The second at which the local time is `local`. */
  second(local) {
    const guess = local - this.start - this.offset(local - this.start);
    return local - this.start - this.offset(guess);
  }

  /** Parts of the local time at a second. */
  parts(second) {
    const local = Math.floor(this.local(second));
    const date = new Date(local * 1000);
    return {
      day: DAYS[((Math.floor((local - FIRST_MONDAY) / DAY) % 7) + 7) % 7],
      week: Math.floor((local - FIRST_MONDAY) / WEEK) - Math.floor((this.origin - FIRST_MONDAY) / WEEK) + 1,
      year: date.getUTCFullYear(),
      month: MONTHS[date.getUTCMonth()],
      monthNumber: date.getUTCMonth() + 1,
      date: date.getUTCDate(),
      time: `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`,
      seconds: two(date.getUTCSeconds()),
    };
  }

  /** "Tue 15 Oct 14:02"; with the year if `whole`. */
  words(second, whole = false) {
    if (second === null || second === undefined || Number.isNaN(second)) return "";
    const { day, week, year, month, date, time, seconds } = this.parts(second);
    if (this.nominal) return `week ${week} ${day} ${time}${whole ? `:${seconds}` : ""}`;
    return whole ? `${day} ${date} ${month} ${year} ${time}:${seconds}` : `${day} ${date} ${month} ${time}`;
  }

  /** "14:02" if the day is the same as that of `near`, else with the day. */
  near(second, near) {
    if (second === null || second === undefined || Number.isNaN(second)) return "";
    const { day, time } = this.parts(second);
    if (Math.abs(second - near) < 12 * HOUR && day === this.parts(near).day) return time;
    return Math.abs(second - near) < 6 * DAY ? `${day} ${time}` : this.words(second);
  }

  /** The value of a `datetime-local` field at a second. */
  field(second) {
    const { year, monthNumber, date, time, seconds } = this.parts(second);
    return `${String(year).padStart(4, "0")}-${two(monthNumber)}-${two(date)}T${time}:${seconds}`;
  }

  /** The second that a field means: a local time, or for a nominal clock a second, "3 d" or "week 2 Tue 14:00"; else null. */
  secondOfField(text) {
    const words = text.trim();
    if (!this.nominal) {
      const unix = Date.parse(`${words}Z`) / 1000;
      return Number.isFinite(unix) ? this.second(unix) : null;
    }
    const amount = /^(-?[\d.]+)\s*(s|m|min|h|d|day|days|w|week|weeks)?$/i.exec(words);
    if (amount) {
      const unit = { s: 1, m: 60, h: HOUR, d: DAY, w: WEEK }[(amount[2] ?? "s")[0].toLowerCase()];
      return Number(amount[1]) * unit;
    }
    const date = /^week\s+(\d+)\s+(\w{3})\w*\s+(\d+):(\d+)(?::(\d+))?$/i.exec(words);
    const day = date ? DAYS.findIndex((name) => name.toLowerCase() === date[2].toLowerCase()) : -1;
    if (day < 0) return null;
    const monday = floorTo(this.origin - FIRST_MONDAY, WEEK) + FIRST_MONDAY;
    return this.second(monday + (Number(date[1]) - 1) * WEEK + day * DAY + Number(date[3]) * HOUR + Number(date[4]) * 60 + Number(date[5] ?? 0));
  }

  /**
   * Ticks at round local times.
   * @param {number} from
   * @param {number} to
   * @param {number} most most ticks
   * @returns {{at: number, text: string}[]}
   */
  ticks(from, to, most) {
    const step = stepOf((to - from) / Math.max(most, 1), this.nominal);
    const [begin, end] = [this.local(from), this.local(to)];
    const locals = step.months ? monthsBetween(begin, end, step.months) : multiples(begin, end, step.seconds);
    const ticks = [];
    let before = null;
    for (const local of locals) {
      const at = this.second(local);
      if (at < from || at > to) continue;
      const parts = this.parts(at);
      ticks.push({ at, text: this.tickText(parts, before, step) });
      before = parts;
    }
    return ticks;
  }

  tickText(parts, before, step) {
    const day = this.nominal ? `${parts.day} week ${parts.week}` : `${parts.day} ${parts.date} ${parts.month}`;
    if (step.months) return parts.monthNumber === 1 || !before ? `${parts.month} ${parts.year}` : parts.month;
    if (step.seconds < DAY) {
      if (!before) return `${parts.time}\n${day}${this.nominal ? "" : ` ${parts.year}`}`;
      return before.day !== parts.day ? `${parts.time}\n${day}` : parts.time;
    }
    if (this.nominal) return step.seconds < WEEK ? day : `week ${parts.week}`;
    const plain = step.seconds < WEEK ? day : `${parts.date} ${parts.month}`;
    return !before || before.year !== parts.year ? `${plain}\n${parts.year}` : plain;
  }
}

/** The smallest round step that is at least `seconds`. */
function stepOf(seconds, nominal) {
  for (const step of [60, 300, 600, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 3 * DAY, WEEK, 2 * WEEK]) {
    if (step >= seconds) return { seconds: step };
  }
  if (nominal)
    return { seconds: [4, 8, 13, 26, 52, 104].map((weeks) => weeks * WEEK).find((step) => step >= seconds) ?? 520 * WEEK };
  for (const months of [1, 2, 3, 6, 12, 24, 60]) if (months * 30 * DAY >= seconds) return { months };
  return { months: 120 };
}

/** Multiples of a step, counted from Monday 00:00, between two local times. */
function multiples(begin, end, step) {
  const found = [];
  for (let local = Math.ceil((begin - FIRST_MONDAY) / step) * step + FIRST_MONDAY; local <= end; local += step) found.push(local);
  return found;
}

/** Beginnings of every `months`-th month between two local times. */
function monthsBetween(begin, end, months) {
  const found = [];
  const date = new Date(begin * 1000);
  let month = date.getUTCFullYear() * 12 + date.getUTCMonth();
  for (month = Math.ceil(month / months) * months; ; month += months) {
    const local = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000;
    if (local > end) return found;
    if (local >= begin) found.push(local);
  }
}
