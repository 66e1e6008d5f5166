"""Times and numbers that are fixed in Slurm's controller, for its plain and its compiled form."""

#: s between looks of the backfill scheduler for changes (sched/backfill, short sleep).
LOOK_EVERY = 1

#: Main passes at most within one second, each after a preemption.
MOST_PASSES = 8

#: s within which ends of running jobs count as one when a start is foretold, at first; it doubles
#: (select/cons_tres, time_window).
TIME_WINDOW = 30

#: Jobs that are taken out at most before a fit is tried again (select/cons_tres).
MOST_TAKEN_OUT = 200

#: s that a job beyond its limit is expected to go on (KillWait).
KILL_WAIT = 30
