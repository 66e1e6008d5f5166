"""Dividing what was waited on a cluster among the users who run there, compiled."""

from __future__ import annotations

from hpcrowd.environment.jobs import Float64Rows, Int64Rows


def attribute(
    runs: Int64Rows,
    waits: Int64Rows,
    places: Int64Rows,
    times: Float64Rows,
    own: Int64Rows,
    seen: Float64Rows,
    spent: Float64Rows,
    jobs: Int64Rows,
) -> None:
    """Add what the waits on one cluster owe to the users who run there.

    With A_X(t) the integral of the share of X, a wait of p processors from s to e owes X
    p (A_X(e) - A_X(s)). So the processors that Y waits for are multiplied by what A_X has grown
    whenever one of its waits begins or ends, for those X only that ran since the last time. A_X
    itself is R_X times the growth of g, the integral of one over all processors in use: it is
    brought up to date when R_X changes, or when somebody reads it.

    Users who run are listed; those who ran are in a chain, the last to stop first, so that no time
    is spent on the others.

    Parameters
    ----------
    runs, waits
        Starts and ends of jobs, and of waits, in the order of time, shape (columns, events).
        Columns are the second, the processors added, the second of the begin, the user and, of
        waits, whether the wait counts as due to nobody already.
    places, times, own, seen
        Zeros, of shapes (6, by + 1), (2, by), (2, delayed) and (delayed, by + 1).
    spent, jobs
        Processor-seconds and jobs that are added to, shape (delayed, by + 1); the last column is
        nobody's.
    """
    run_at, run_change, run_user = runs[0], runs[1], runs[3]
    wait_at, wait_change, since = waits[0], waits[1], waits[2]
    wait_user, counted = waits[3], waits[4]
    held, stopped, listed = places[0], places[1], places[2]
    place, after, before = places[3], places[4], places[5]
    area, at_growth = times[0], times[1]
    asked, last = own[0], own[1]
    nobody = len(area)
    for user in range(nobody + 1):
        after[user] = before[user] = nobody  # the chain begins and ends at nobody
        place[user] = -1
    running = total = now = idle_until = event = 0
    growth = idle = 0.0
    for user in range(len(last)):
        last[user] = -1
    for wait in range(len(wait_at)):
        at = wait_at[wait]
        # Changes of this very second matter only to what comes after it.
        while True:
            changes = event < len(run_at) and run_at[event] < at
            until = run_at[event] if changes else at
            if until > now:
                if total > 0:
                    growth += (until - now) / total
                else:
                    idle += until - now
                    idle_until = until
                now = until
            if not changes:
                break
            user = run_user[event]
            area[user] += held[user] * (growth - at_growth[user])
            at_growth[user] = growth
            if held[user] == 0:
                listed[running] = user
                place[user] = running
                running += 1
                if before[user] != nobody or after[nobody] == user:  # in the chain
                    after[before[user]] = after[user]
                    before[after[user]] = before[user]
                    after[user] = before[user] = nobody
            held[user] += run_change[event]
            total += run_change[event]
            if held[user] == 0:
                running -= 1
                moved = listed[running]
                listed[place[user]] = moved
                place[moved] = place[user]
                stopped[user] = now
                after[user] = after[nobody]
                before[user] = nobody
                before[after[nobody]] = user
                after[nobody] = user
            if total == 0:
                growth = 0.0  # nobody looks back: all areas are up to date
            event += 1
        mine, change = wait_user[wait], wait_change[wait]
        if at > last[mine]:
            weight = asked[mine]
            for i in range(running):
                user = listed[i]
                area[user] += held[user] * (growth - at_growth[user])
                at_growth[user] = growth
                spent[mine, user] += weight * (area[user] - seen[mine, user])
                seen[mine, user] = area[user]
            user = after[nobody]
            while user != nobody and stopped[user] > last[mine]:
                spent[mine, user] += weight * (area[user] - seen[mine, user])
                seen[mine, user] = area[user]
                user = after[user]
            spent[mine, nobody] += weight * (idle - seen[mine, nobody])
            seen[mine, nobody] = idle
            last[mine] = at
        asked[mine] += change
        if change < 0:
            for i in range(running):
                jobs[mine, listed[i]] += 1
            user = after[nobody]
            while user != nobody and stopped[user] > since[wait]:
                jobs[mine, user] += 1
                user = after[user]
            if idle_until > since[wait] and not counted[wait]:
                jobs[mine, nobody] += 1
