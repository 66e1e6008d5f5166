"""What a user remembers and notices, and how it draws a pause from a forest: compiled.

The memory of a user is a row of numbers, its *slots*. What it notices when a unit of work is
released is an array of *features*, in the order of
:data:`hpcrowd.agents.learned.features.FEATURES`. The same functions run in a simulation, on
simulated times, and over a record, on recorded ones, so that a model is fitted to just what its
users will notice.
"""

from __future__ import annotations

from math import cos, log2, log10, pi, sin

from hpcrowd.agents.learned.trees import HOURS
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.jobs import Column

# Columns of the table of jobs, which is a matrix.
PROCESSORS, RUN_TIME, REQUESTED = Column.PROCESSORS, Column.RUN_TIME, Column.REQUESTED_TIME

#: Longest gap between submissions in a session, s (Zakay and Feitelson 2015, Definition 1).
SESSION_GAP = HOUR

#: Weight of the latest pause in a user's means.
RECENT = 0.15

#: Weight of a submission on one of the two days of the weekend; of the five others it is 1.
WEEKEND = 2.5

#: When a day begins for those who are still up, s after midnight; our choice.
DAWN = 5 * HOUR

#: Hours over which the activity to come is averaged.
AHEAD = 8

#: Units before a release that are looked at for work that is not over.
LOOK_BACK = 64

#: A value that is not known: trees put it below all others.
NOTHING = -2.0

# Slots of a memory. Pauses and times are decades, see ``decades``.
FIRST, SENT, BEGAN, SESSION, BATCHES, PAUSES, DAYS, LAST_DAY = range(8)
LAST, BEFORE, AFTER_END, AFTER_SUBMISSION, LONG, SHORT, SPREAD = range(8, 15)
STAYS, BREAK, RESPONSE, SUBMISSIONS = range(15, 19)
#: The first hour of the user's rhythm: submissions in each hour; ``SUBMISSIONS`` is their sum.
RHYTHM = 19

#: Latest pauses that a user remembers, after the end of work and after a submission each; our
#: choice.
LATEST = 16

#: The first slot of what it remembers of pauses after a submission: how many there were, and of
#: each, in turn, its length, s, and when it began, s after midnight. Those after ends follow.
OWN = RHYTHM + HOURS
OF_A_KIND = 1 + 2 * LATEST

#: Slots in all.
SLOTS = OWN + 2 * OF_A_KIND


@compiled
def decades(seconds):
    """Return log10(1 + t / 1 min) of a time of at least 0 s."""
    return log10(1.0 + max(seconds, 0) / 60.0)


@compiled
def hour_of(wall):
    """Return the hour of a rhythm of a local time, s since a Monday, 00:00."""
    hour = (wall // HOUR) % 24
    return hour + 24 if (wall // DAY) % 7 >= 5 else hour


@compiled
def activity(memory, common, prior, wall):
    """Return how active a user is at a local time; 1 is the mean over the hours."""
    here = hour_of(wall)
    base = here - here % 24
    hour = here % 24
    # Hours beside it count half, as few submissions say little about a single hour.
    mine = (
        2.0 * memory[RHYTHM + here]
        + memory[RHYTHM + base + (hour + 1) % 24]
        + memory[RHYTHM + base + (hour + 23) % 24]
    ) / 4.0
    return (mine * HOURS + prior * common[here]) / (memory[SUBMISSIONS] + prior)


@compiled
def begin(memory):
    """Make the memory of a user who has done nothing yet."""
    for k in range(SLOTS):
        memory[k] = NOTHING
    for k in range(HOURS):
        memory[RHYTHM + k] = 0.0
    memory[OWN] = memory[OWN + OF_A_KIND] = 0.0
    memory[BATCHES] = memory[PAUSES] = memory[DAYS] = memory[SUBMISSIONS] = 0.0


@compiled
def _mean(before, value):
    return value if before == NOTHING else before + RECENT * (value - before)


@compiled
def note(memory, ended, released, first, last, wall):
    """Remember the submission of a unit.

    ``ended`` is 1 if the end of another unit released it, 0 if a submission did, -1 if nothing;
    ``released`` is when; ``first`` and ``last`` are its first and last submission, all s; ``wall``
    is the local time of the first.
    """
    if memory[FIRST] == NOTHING:
        memory[FIRST] = first
    goes_on = memory[SENT] != NOTHING and first - memory[SENT] <= SESSION_GAP
    if ended >= 0:
        pause = decades(first - released)
        memory[BEFORE] = memory[LAST]
        memory[LAST] = pause
        slot = AFTER_END if ended == 1 else AFTER_SUBMISSION
        if memory[slot] != NOTHING:
            memory[SPREAD] = _mean(memory[SPREAD], abs(pause - memory[slot]))
        memory[slot] = _mean(memory[slot], pause)
        slot = LONG if first - released > SESSION_GAP else SHORT
        memory[slot] = _mean(memory[slot], pause)
        memory[STAYS] = _mean(memory[STAYS], 1.0 if goes_on else 0.0)
        if not goes_on:
            memory[BREAK] = pause
        memory[PAUSES] += 1
        base = OWN + ended * OF_A_KIND
        place = base + 1 + 2 * (int(memory[base]) % LATEST)
        memory[place] = first - released
        memory[place + 1] = (wall - (first - released)) % DAY
        memory[base] += 1
    if not goes_on:
        memory[SESSION] = first
        memory[BATCHES] = 0.0
    memory[BATCHES] += 1
    day = wall // DAY
    if day != memory[LAST_DAY]:
        memory[DAYS] += 1
        memory[LAST_DAY] = day
    memory[BEGAN] = first
    memory[SENT] = last
    hour = hour_of(wall)
    weight = 1.0 if hour < 24 else WEEKEND
    memory[RHYTHM + hour] += weight
    memory[SUBMISSIONS] += weight


@compiled
def notice(features, memory, common, prior, jobs, rows, times, before, ended, at, wall, open_units):
    """Write what a user notices when a unit is released into ``features``.

    ``jobs`` is the matrix of jobs, ``rows`` those of the unit that released it, ``times`` the
    columns of submission, start and end, ``before`` the number of jobs of the unit submitted last,
    ``at`` the second and ``wall`` its local time, ``open_units`` how many units of the user are not
    over.
    """
    submit, start, end = times
    decisive = rows[len(rows) - 1]
    if ended:
        for row in rows:
            if jobs[end, row] > jobs[end, decisive]:
                decisive = row
    requested = jobs[REQUESTED, decisive]
    asked = decades(requested) if requested > 0 else NOTHING
    response = waited = ran = NOTHING
    if ended:
        over = jobs[end, decisive]
        began = jobs[start, decisive]
        sent = jobs[submit, decisive]
        response = decades(over - sent)
        waited = decades(began - sent) if began >= 0 else response
        ran = decades(over - began) if began >= 0 else 0.0
        memory[RESPONSE] = _mean(memory[RESPONSE], response)
    known = ended and requested > 0
    features[0] = ended
    features[1] = response
    features[2] = waited
    features[3] = ran
    features[4] = asked
    features[5] = response - asked if known else NOTHING
    features[6] = ran - asked if known else NOTHING
    features[7] = log2(max(jobs[PROCESSORS, decisive], 1))
    features[8] = log2(before)
    features[9] = len(rows) if ended else 0
    features[10] = open_units
    features[11] = decades(at - memory[SESSION])
    features[12] = log2(1 + memory[BATCHES])
    features[13] = decades(at - memory[SENT])
    features[14] = decades(memory[SENT] - memory[BEGAN])
    of_day = wall % DAY
    features[15] = of_day / HOUR
    features[16] = (wall // DAY) % 7
    features[17] = sin(2 * pi * of_day / DAY)
    features[18] = cos(2 * pi * of_day / DAY)
    features[19] = memory[LAST]
    features[20] = memory[BEFORE]
    features[21] = memory[AFTER_END]
    features[22] = memory[AFTER_SUBMISSION]
    features[23] = memory[LONG]
    features[24] = memory[SHORT]
    features[25] = memory[SPREAD]
    features[26] = memory[STAYS]
    features[27] = memory[BREAK]
    features[28] = memory[RESPONSE]
    features[29] = log2(1 + memory[PAUSES])
    features[30] = log2(1 + memory[DAYS])
    features[31] = decades(at - memory[FIRST])
    features[32] = activity(memory, common, prior, wall)
    ahead = 0.0
    for hour in range(1, AHEAD + 1):
        ahead += activity(memory, common, prior, wall + hour * HOUR)
    features[33] = ahead / AHEAD
    for day in range(1, 4):
        ahead = 0.0
        for hour in range(24):
            ahead += activity(memory, common, prior, (wall // DAY + day) * DAY + hour * HOUR)
        features[33 + day] = ahead / 24.0


#: Kinds of pauses, see :func:`kind_of`.
KINDS = 7

#: Numbers between 0 and 1 for a pause, see :func:`draw_pause`.
CHANCES = 3

#: Number of features.
NOTICED = 37


@compiled
def leaf_of(forest, tree, features):
    """Return the leaf of a tree, of pauses or choices, that the features belong to."""
    node = forest.root[tree]
    while forest.feature[node] >= 0:
        node = forest.child[node] + (features[forest.feature[node]] > forest.threshold[node])
    return node


@compiled
def transported(pause, released, absence, wall):
    """Return a pause that began at a time of day, s after midnight, as if at a local time, s.

    A long one keeps its days and the time of day at which it ended: who came back the next day at
    nine comes back at nine.
    """
    if pause < absence:
        return pause
    since = (released - DAWN) % DAY + pause
    return pause if since < DAY else since - (wall - DAWN) % DAY


@compiled
def own_pause(memory, base, place, absence, wall):
    """Return a pause that the user remembers, as if it began at a local time, s."""
    slot = base + 1 + 2 * place
    return transported(int(memory[slot]), int(memory[slot + 1]), absence, wall)


@compiled
def kind_of(pause):
    """Return the kind of a pause: 0 up to an hour, then wider and wider."""
    if pause <= HOUR:
        return 0
    if pause <= 4 * HOUR:
        return 1
    if pause <= 10 * HOUR:
        return 2
    if pause <= 36 * HOUR:
        return 3
    if pause <= 84 * HOUR:
        return 4
    if pause <= 10 * DAY:
        return 5
    return 6


@compiled
def _taken(chance, weight, total):
    """Return whether something takes the place of what was chosen before, and a new chance.

    ``total`` is the weight of all so far, with its own ``weight``.
    """
    share = weight / total
    if chance < share:
        return True, chance / share
    return False, (chance - share) / (1.0 - share)


@compiled
def draw_pause(forest, features, memory, wall, chances, pauses, active):
    """Return a pause, s.

    It is one of the user's own latest pauses, the more often the more there are, or one from a leaf
    of the forest. There, first the kind of the pause is chosen, by how often it comes and by how
    much more or less active the user will be then than those who made such pauses; then one of this
    kind, by how active the user will be at its end; of short ones each counts alike.

    ``chances`` are numbers between 0 and 1: for the tree or own pause, the kind and the pause.
    ``pauses`` and ``active`` are room for the examples of a leaf.
    """
    base = OWN + int(features[0]) * OF_A_KIND
    known = min(int(memory[base]), LATEST)
    share = known / (known + forest.own)
    chance = chances[0]
    if chance < share:
        return own_pause(memory, base, int(chance / share * known), forest.absence, wall)
    chance = (chance - share) / (1.0 - share)
    leaf = leaf_of(forest, int(chance * len(forest.root)), features)
    size, first = forest.size[leaf], forest.child[leaf]
    now = activity(memory, forest.common, forest.prior, wall)
    total, kind, chance = 0.0, 0, chances[1]
    for k in range(size):
        example = forest.members[first + k]
        pauses[k], active[k], weight = considered(forest, example, memory, wall, now)
        total += weight
        taken, chance = _taken(chance, weight, total)
        if taken:
            kind = kind_of(pauses[k])
    total, chosen, chance = 0.0, 0, chances[2]
    for k in range(size):
        if kind_of(pauses[k]) == kind:
            weight = active[k] if kind > 0 else 1.0
            total += weight
            taken, chance = _taken(chance, weight, total)
            if taken:
                chosen = pauses[k]
    return chosen


@compiled
def considered(forest, example, memory, wall, now):
    """Return the pause of an example, how active the user will be at its end, and its weight.

    ``now`` is how active the user is at ``wall``.
    """
    pause = transported(forest.pause[example], forest.released[example], forest.absence, wall)
    active = activity(memory, forest.common, forest.prior, wall + pause)
    return pause, active, (active / now / forest.lift[example]) ** forest.pull


@compiled
def all_pauses(pauses, weights, active, forest, features, memory, wall):
    """Write all pauses that a user may draw, and the weight of each; return how many there are.

    A pause that several trees offer comes several times. ``active`` is room for as many.
    """
    base = OWN + int(features[0]) * OF_A_KIND
    known = min(int(memory[base]), LATEST)
    count = 0
    for place in range(known):
        pauses[count] = own_pause(memory, base, place, forest.absence, wall)
        weights[count] = 1.0 / (known + forest.own)
        count += 1
    now = activity(memory, forest.common, forest.prior, wall)
    others = forest.own / (known + forest.own) / len(forest.root)
    for tree in range(len(forest.root)):
        leaf = leaf_of(forest, tree, features)
        first, whole = count, 0.0
        for place in range(forest.child[leaf], forest.child[leaf] + forest.size[leaf]):
            example = forest.members[place]
            pauses[count], active[count], weights[count] = considered(
                forest, example, memory, wall, now
            )
            whole += weights[count]
            count += 1
        for kind in range(KINDS):
            before = after = 0.0
            for k in range(first, count):
                if kind_of(pauses[k]) == kind:
                    before += weights[k]
                    weights[k] = active[k] if kind > 0 else 1.0
                    after += weights[k]
            for k in range(first, count):
                if kind_of(pauses[k]) == kind:
                    weights[k] *= others * before / after / whole
    return count


@compiled
def chances_of(choices, features):
    """Return the chances to wait for the end of a unit, and to submit such a unit again."""
    waits = again = 0.0
    trees = len(choices.root)
    for tree in range(trees):
        leaf = leaf_of(choices, tree, features)
        waits += choices.waits[leaf]
        again += choices.again[leaf]
    return waits / trees, again / trees


@compiled
def lifts(found, kept, common, prior, wall, pauses):
    """Write how active each user was at the end of a pause, relative to its begin."""
    for row in range(len(pauses)):
        now = activity(kept[row], common, prior, wall[row])
        found[row] = activity(kept[row], common, prior, wall[row] + pauses[row]) / now


@compiled
def walk(found, kept, after, memory, common, prior, jobs, rows, first, times, units, low, high):
    """Let a user live through its recorded units, ``low`` to ``high``.

    What it noticed at each release is written into ``found``, what it remembered then into
    ``kept``, and what it noticed after each submission into ``after``, a row for each unit.
    ``units`` has the columns released, reason (1 ended, 0 follows, -1 nothing), source unit, first
    and last submission, end, and local times of release, first and last submission.
    """
    released, ended, source, start, last, end, wall, begins, closes = units
    begin(memory)
    for unit in range(low, high):
        before = first[unit] - first[unit - 1]
        if ended[unit] >= 0:
            of = source[unit]
            notice(
                found[unit], memory, common, prior, jobs, rows[first[of] : first[of + 1]], times,
                before, ended[unit], released[unit], wall[unit],
                _open_at(end, released[unit], low, unit),
            )  # fmt: skip
            for slot in range(SLOTS):
                kept[unit, slot] = memory[slot]
        note(memory, ended[unit], released[unit], start[unit], last[unit], begins[unit])
        notice(
            after[unit], memory, common, prior, jobs, rows[first[unit] : first[unit + 1]], times,
            first[unit + 1] - first[unit], 0, last[unit], closes[unit],
            _open_at(end, last[unit], low, unit + 1),
        )  # fmt: skip


@compiled
def _open_at(end, at, low, high):
    """Return how many of a user's last units before ``high`` are not over at a second."""
    count = 0
    for unit in range(max(high - LOOK_BACK, low), high):
        count += end[unit] > at
    return count
