from .delays import (
    Ahead,
    Blockers,
    Holder,
    UserDelays,
    UserShare,
    blockers_of,
    delays_of_user,
    delays_table,
)
from .gantt import gantt_picture, gantt_table
from .graph import UNIT_STATES, graph_network, graph_picture, graph_table
from .load import (
    Lateness,
    lateness_now,
    load_picture,
    load_table,
    queue_picture,
    queue_table,
    submissions_picture,
    submissions_table,
)
from .moment import Moment, activity_count, next_event_of, recover_work
from .units import pauses_picture, pauses_table
from .users import STATES, decisions_picture, decisions_table, users_picture, users_table
from .week import Hours, hours_of, week_picture, week_table

__all__ = [
    "STATES",
    "UNIT_STATES",
    "Ahead",
    "Blockers",
    "Holder",
    "Hours",
    "Lateness",
    "Moment",
    "UserDelays",
    "UserShare",
    "activity_count",
    "blockers_of",
    "decisions_picture",
    "decisions_table",
    "delays_of_user",
    "delays_table",
    "gantt_picture",
    "gantt_table",
    "graph_network",
    "graph_picture",
    "graph_table",
    "hours_of",
    "lateness_now",
    "load_picture",
    "load_table",
    "next_event_of",
    "pauses_picture",
    "pauses_table",
    "queue_picture",
    "queue_table",
    "recover_work",
    "submissions_picture",
    "submissions_table",
    "users_picture",
    "users_table",
    "week_picture",
    "week_table",
]
