from .load import load_picture, load_table
from .moment import Moment
from .submissions import Lateness, lateness_now, submissions_picture, submissions_table
from .users import STATES, users_picture, users_table
from .waiting import queue_picture, queue_table

__all__ = [
    "STATES",
    "Lateness",
    "Moment",
    "lateness_now",
    "load_picture",
    "load_table",
    "queue_picture",
    "queue_table",
    "submissions_picture",
    "submissions_table",
    "users_picture",
    "users_table",
]
