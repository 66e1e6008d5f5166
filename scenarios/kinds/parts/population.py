"""A population as the users of a replay: several behaviours, and clusters to switch to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

from hpcrowd.scenarios.kinds.fields import FileConfig
from hpcrowd.scenarios.kinds.trace_settings import TraceScenario

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import ClusterSpec


class PopulationOfReplay(TraceScenario):
    """The users of a run may be a population."""

    @override
    @classmethod
    def users_from(cls, users: Any, folder: Path) -> FileConfig | None:
        """Read the file of a population; a table describes one."""
        in_file = isinstance(users, str) and users.endswith(".toml")
        if not in_file and not isinstance(users, dict | FileConfig):
            return super().users_from(users, folder)
        from hpcrowd.scenarios.kinds.population_files import PopulationConfig

        return PopulationConfig.given(users, folder)

    @override
    def behaviour_and_clusters(self) -> tuple[Any, Mapping[str, ClusterSpec]]:
        users, clusters = super().behaviour_and_clusters()
        if not isinstance(users, FileConfig):
            return users, clusters
        from hpcrowd.scenarios.kinds.population_files import PopulationConfig

        assert isinstance(users, PopulationConfig)
        return users.mixture(), users.others()


#: The settings by kind of run.
SETTINGS = {"replay": PopulationOfReplay}
