"""The Distributed ASCI Supercomputer 3, a Dutch grid of five clusters (Minh 2012, Table 6.1)."""

from __future__ import annotations

from typing import NamedTuple

from hpcrowd.environment.cluster import ClusterSpec


class DAS3Cluster(NamedTuple):
    """A row of Table 6.1."""

    name: str  #: as in the table
    location: str
    nodes: int
    cores: int  #: of a node: two processors, with one core or two each
    ghz: float  #: clock of the processors

    @property
    def processors(self) -> int:
        """Cores of all nodes, one for each processor that a job may request."""
        return self.nodes * self.cores


#: Table 6.1. ``85 dual, dual-core`` is 85 nodes of two processors with two cores each.
DAS3 = (
    DAS3Cluster("VU", "Vrije University", 85, 4, 2.4),
    DAS3Cluster("LU", "Leiden University", 32, 2, 2.6),
    DAS3Cluster("UvA", "Amsterdam University", 41, 4, 2.2),
    DAS3Cluster("TUD", "Delft University", 68, 2, 2.4),
    DAS3Cluster("UvAMN", "MultimediaN", 46, 2, 2.4),
)

#: Clock of the nodes whose speed is 1, GHz: those of the first cluster.
REFERENCE_GHZ = DAS3[0].ghz


def das3_clusters(scheduler: str = "easy") -> dict[str, ClusterSpec]:
    """Return the clusters by name; speeds are proportional to the clock, 1 for the VU's nodes.

    Parameters
    ----------
    scheduler
        Policy of each; the thesis runs EASY (aggressive backfilling) on all.
    """
    return {
        row.name: ClusterSpec(row.processors, scheduler, row.ghz / REFERENCE_GHZ) for row in DAS3
    }
