"""Populations: generated users, mixtures of users, and users who come and go."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agents.generative.archetypes import Debugger as Debugger
    from .agents.generative.archetypes import LargeRuns as LargeRuns
    from .agents.generative.archetypes import NightScript as NightScript
    from .agents.generative.archetypes import Office as Office
    from .agents.generative.archetypes import ParameterSweeper as ParameterSweeper
    from .agents.generative.archetypes import demo_population as demo_population
    from .agents.generative.empirical import Attendance as Attendance
    from .agents.generative.empirical import Empirical as Empirical
    from .agents.generative.empirical import Habits as Habits
    from .agents.generative.generated import GeneratedUser as GeneratedUser
    from .agents.generative.generated import Generating as Generating
    from .agents.generative.generated import LogNormal as LogNormal
    from .agents.generative.shmueli import Doing as Doing
    from .agents.generative.shmueli import ShmueliFeitelson as ShmueliFeitelson
    from .agents.generative.shmueli import SiteModel as SiteModel
    from .agents.generative.shmueli import SiteUser as SiteUser
    from .agents.populations.component_users import AsRecorded as AsRecorded
    from .agents.populations.component_users import ClosedLoop as ClosedLoop
    from .agents.populations.component_users import ComponentUser as ComponentUser
    from .agents.populations.component_users import Member as Member
    from .agents.populations.components import Component as Component
    from .agents.populations.components import Pool as Pool
    from .agents.populations.openness import Consequences as Consequences
    from .agents.populations.openness import Happening as Happening
    from .agents.populations.openness import Openness as Openness
    from .agents.populations.openness import PoolRules as PoolRules
    from .agents.populations.openness import Visit as Visit
    from .agents.populations.openness import Visits as Visits
    from .agents.populations.population import Casting as Casting
    from .agents.populations.population import Mixture as Mixture
    from .agents.populations.population import Part as Part
    from .agents.populations.satisfaction import Alea as Alea
    from .agents.populations.satisfaction import Formula as Formula
    from .agents.populations.satisfaction import Habit as Habit
    from .agents.populations.satisfaction import Minding as Minding
    from .agents.populations.satisfaction import Requested as Requested
    from .agents.populations.semi_open import ComponentWork as ComponentWork
    from .agents.populations.semi_open import GroupWork as GroupWork
    from .agents.populations.semi_open import Living as Living
    from .agents.populations.semi_open import Roster as Roster
    from .agents.populations.semi_open import SiteWork as SiteWork
    from .agents.populations.semi_open import add_members as add_members
    from .agents.populations.semi_open import draw_roster as draw_roster
    from .analysis.accounts.population import population_accounts as population_accounts
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
