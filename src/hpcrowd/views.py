"""Views of a moment of a run, as tables and pictures."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.views.delays import Ahead as Ahead
    from .analysis.views.delays import Blockers as Blockers
    from .analysis.views.delays import Holder as Holder
    from .analysis.views.delays import UserDelays as UserDelays
    from .analysis.views.delays import UserShare as UserShare
    from .analysis.views.delays import blockers_of as blockers_of
    from .analysis.views.delays import delays_of_user as delays_of_user
    from .analysis.views.delays import delays_table as delays_table
    from .analysis.views.gantt import gantt_picture as gantt_picture
    from .analysis.views.gantt import gantt_table as gantt_table
    from .analysis.views.graph import UNIT_STATES as UNIT_STATES
    from .analysis.views.graph import graph_network as graph_network
    from .analysis.views.graph import graph_picture as graph_picture
    from .analysis.views.graph import graph_table as graph_table
    from .analysis.views.graph import unit_states as unit_states
    from .analysis.views.load import Lateness as Lateness
    from .analysis.views.load import lateness_now as lateness_now
    from .analysis.views.load import load_picture as load_picture
    from .analysis.views.load import load_table as load_table
    from .analysis.views.load import queue_picture as queue_picture
    from .analysis.views.load import queue_table as queue_table
    from .analysis.views.load import submissions_picture as submissions_picture
    from .analysis.views.load import submissions_table as submissions_table
    from .analysis.views.moment import Moment as Moment
    from .analysis.views.moment import activity_count as activity_count
    from .analysis.views.moment import averages as averages
    from .analysis.views.moment import next_event_of as next_event_of
    from .analysis.views.moment import recover_work as recover_work
    from .analysis.views.units import OwnUnits as OwnUnits
    from .analysis.views.units import own_units as own_units
    from .analysis.views.units import pauses_picture as pauses_picture
    from .analysis.views.units import pauses_table as pauses_table
    from .analysis.views.users import STATES as STATES
    from .analysis.views.users import Hours as Hours
    from .analysis.views.users import decisions_picture as decisions_picture
    from .analysis.views.users import decisions_table as decisions_table
    from .analysis.views.users import hours_of as hours_of
    from .analysis.views.users import users_picture as users_picture
    from .analysis.views.users import users_table as users_table
    from .analysis.views.users import week_picture as week_picture
    from .analysis.views.users import week_table as week_table
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
