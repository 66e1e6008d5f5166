"""What a user notices when work is released: the features that its decisions depend on."""

from __future__ import annotations

from typing import NamedTuple

#: Unit of times: factors of ten, log10(1 + t / 1 min).
DECADES = "decades"

#: Unit of counts on a logarithmic scale.
DOUBLINGS = "doublings"

#: Reasons of releases, as the kernel has them.
ENDED, FOLLOWS, NOTHING = 1, 0, -1


class Feature(NamedTuple):
    """A feature."""

    name: str
    meaning: str
    unit: str = ""


#: The features, in the order in which they are noticed.
FEATURES = (
    Feature("ended", "1 if the end of a unit released it, 0 if the submission before it did"),
    Feature("response", "response time of the unit that has ended", DECADES),
    Feature("wait", "its wait", DECADES),
    Feature("run", "its run time", DECADES),
    Feature("requested", "requested time of the unit that released it", DECADES),
    Feature("response_of_request", "response time relative to the requested time", DECADES),
    Feature("run_of_request", "run time relative to the requested time", DECADES),
    Feature("processors", "processors of the unit that released it", DOUBLINGS),
    Feature("jobs_before", "jobs of the unit submitted last", DOUBLINGS),
    Feature("jobs_ended", "jobs of the unit that has ended"),
    Feature("open", "units of the user that are not over"),
    Feature("session", "time since the session began", DECADES),
    Feature("batches", "batches of the session so far", DOUBLINGS),
    Feature("silence", "time since the last submission", DECADES),
    Feature("span", "from the first to the last submission of the unit before", DECADES),
    Feature("hour", "local hour of the day", "h"),
    Feature("weekday", "day of the week, Monday is 0"),
    Feature("hour_sine", "sine of the hour"),
    Feature("hour_cosine", "cosine of the hour"),
    Feature("last", "the last pause", DECADES),
    Feature("before", "the pause before it", DECADES),
    Feature("after_end", "mean pause after the end of work", DECADES),
    Feature("after_submission", "mean pause after a submission", DECADES),
    Feature("long", "mean pause of more than an hour", DECADES),
    Feature("short", "mean pause of up to an hour", DECADES),
    Feature("spread", "mean deviation of pauses from their mean", DECADES),
    Feature("stays", "share of pauses that stayed within the session"),
    Feature("break", "the last pause between sessions", DECADES),
    Feature("responses", "mean response time", DECADES),
    Feature("pauses", "pauses so far", DOUBLINGS),
    Feature("days", "days with a submission so far", DOUBLINGS),
    Feature("known_for", "time since the first submission", DECADES),
    Feature("active_now", "the user's activity at this hour, 1 is the mean"),
    Feature("active_ahead", "mean activity in the next eight hours"),
    Feature("active_tomorrow", "mean activity on the next day"),
    Feature("active_in_two_days", "mean activity on the day after it"),
    Feature("active_in_three_days", "mean activity on the third day"),
)

#: Their names.
NAMES = tuple(feature.name for feature in FEATURES)
