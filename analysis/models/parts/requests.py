"""What generated jobs ask of a machine of nodes, drawn jointly with their size and run time.

A conditional hot deck: each generated job takes over what a *donor* asks for, a job of the fitted
trace of about the same processors and run time. So whatever goes together in the trace, such as
long jobs, GPUs and a partition, does so in generated workloads, without a model of each. Donors are
the nearest ones in doublings of processors and of run time, at least :data:`LEAST_DONORS` of them,
and of these each is equally likely. Models that draw several kinds of jobs, such as MUGM's groups
of users, draw donors of the same kind. Jobs of a bag, and repetitions of a job, use the same random
number, so that they usually ask for the same.

Hot decks are from surveys, where a respondent's answers fill in those that another one did not
give: Andridge and Little, A review of hot deck imputation for survey non-response, International
Statistical Review 78(1), 2010, sections 2 (adjustment cells) and 3 (nearest neighbours). That they
suit workloads, the distance and the numbers are ours.

What a donor asks for is scaled to the size of the generated job, see :func:`scaled`. Memory per
core is kept, and so are GPUs per core, in whole GPUs. A job that was packed on as few nodes as
possible stays so; one that was spread keeps its cores per node. Tasks stay as wide as they are, or
as the number of processors divides by. All of it stays within what the nodes of the partition have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import Drawn, Numbers, Part
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import plural, round_half_up
from hpcrowd.environment.requests import DATED, WORDS, Ask, Requests

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Machine

#: Least number of donors that one is drawn from; chosen here.
LEAST_DONORS = 5

#: Steps of run times of donors in a doubling; chosen here.
STEPS = 2

#: Most jobs that are kept as donors; of more, evenly spaced ones. Chosen here, so that the file of
#: a model stays below 1 MB.
MOST_DONORS = 10_000

#: Largest number of processors that is not rounded to look for donors, and steps in a doubling of
#: larger ones; chosen here.
LARGEST_EXACT, SIZE_STEPS = 16, 4

#: What no other job takes over: dates, and the places of tasks in their arrays.
OWN = (*DATED, Ask.ARRAY, Ask.TASK, Ask.THROTTLE)

#: What a donor may pass on.
PASSED_ON = tuple(ask for ask in Ask if ask not in OWN)


@dataclass(frozen=True)
class Room:
    """What jobs can have in a partition; on nodes that differ, on the largest."""

    #: Cores and nodes that a job can have in all.
    cores: int
    nodes: int

    #: On a node; memory in MB, 0 if it is not known.
    node_cores: int
    node_gpus: int = 0
    node_memory: int = 0
    longest_s: float = float("inf")  #: longest requested time, s; infinite if it is not known

    def most_nodes(self, cores: int) -> int:
        """Return the most nodes of a job: more than are known if it has more cores than they."""
        return max(self.nodes, -(-cores // self.node_cores))


class SeenRoom(Numbers):
    """What jobs of a partition had at most in a trace."""

    partitions: str = Field(description="the partitions that they name")
    cores: PositiveInt = Field(description="cores of a job")
    nodes: PositiveInt = Field(description="nodes of a job")
    node_cores: PositiveInt = Field(description="cores on a node")
    node_gpus: NonNegativeInt = Field(0, description="GPUs on a node")
    node_memory: NonNegativeInt = Field(0, description="MB; memory on a node")
    longest_s: NonNegativeInt = Field(0, description="s; requested time, 0 if it is not known")

    @classmethod
    def of(cls, partitions: str, used: list[tuple[int, ...]]) -> Self:
        """Return the most of what jobs of a partition had, as :meth:`Asked.used` says it."""
        names = [name for name in cls.model_fields if name != "partitions"]
        most = [max(column) for column in zip(*used, strict=True)]
        return cls(partitions=partitions, **dict(zip(names, most, strict=True)))

    @property
    def room(self) -> Room:
        """The room that a partition has as far as is known."""
        return Room(
            self.cores, self.nodes, self.node_cores, self.node_gpus, self.node_memory,
            self.longest_s or float("inf"),
        )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What one job asks of a machine; what is missing in ``values`` is not asked for."""

    values: dict[Ask, Any]

    @classmethod
    def of(cls, named: dict[str, int | str]) -> Self:
        """Return what the requests of some names say."""
        return cls({Ask[name.upper()]: value for name, value in named.items()})

    def number(self, ask: Ask) -> int:
        """Return a number; :data:`UNKNOWN` if it is not asked for."""
        found: int = self.values.get(ask, UNKNOWN)
        return found

    @cached_property
    def partitions(self) -> str:
        """The partitions that it names; empty for none."""
        return str(self.values.get(Ask.PARTITIONS, ""))

    @property
    def nodes(self) -> int:
        """Least nodes; 1 if it does not ask for more."""
        return max(self.number(Ask.NODES), 1)

    def gpus(self, cores: int) -> int:
        """Return the GPUs of the whole job; 0 for none."""
        tasks = self.number(Ask.TASKS)
        if tasks < 1:
            tasks = -(-cores // max(self.number(Ask.CORES_PER_TASK), 1))
        return max(
            self.number(Ask.GPUS),
            self.number(Ask.GPUS_PER_NODE) * self.nodes,
            self.number(Ask.GPUS_PER_TASK) * tasks,
            0,
        )

    def used(self, cores: int, limit: float) -> tuple[int, ...]:
        """Return what such a job has, in the order of the fields of :class:`SeenRoom`.

        ``limit`` is its requested time, s; negative if it is not known.
        """
        nodes = min(self.nodes, cores)
        on_node = -(-cores // nodes)
        return (
            cores,
            nodes,
            on_node,
            -(-self.gpus(cores) // nodes),
            round_half_up(self.memory_per_core(cores) * on_node),
            max(round_half_up(limit), 0),
        )

    def memory_per_core(self, cores: int) -> float:
        """Return MB for each core; 0 if it does not ask for any, or for all of the node."""
        of_core, of_node = self.number(Ask.MEMORY_PER_CORE), self.number(Ask.MEMORY_PER_NODE)
        return float(max(of_core, 0)) or max(of_node, 0) * min(self.nodes, cores) / cores


def scaled(asked: Asked, before: int, cores: int, room: Room) -> dict[Ask, Any]:
    """Return what a job that asked for ``before`` cores asks for on another number of cores.

    ``room`` is what its partition has room for.
    """
    found = dict(asked.values)
    memory = asked.memory_per_core(before)
    gpus = asked.gpus(before)
    if gpus:
        gpus = max(round_half_up(gpus * cores / before), 1)
    nodes = _nodes(asked, before, cores, room)
    if gpus and room.node_gpus:
        nodes = max(nodes, min(-(-gpus // room.node_gpus), cores, room.most_nodes(cores)))
        gpus = min(gpus, nodes * room.node_gpus)
    on_node = -(-cores // nodes)
    if room.node_memory and memory * on_node > room.node_memory:
        memory = room.node_memory / on_node
    if Ask.NODES in found:
        found[Ask.NODES] = nodes
    if Ask.MAX_NODES in found:
        most = asked.number(Ask.MAX_NODES)
        found[Ask.MAX_NODES] = nodes if most == asked.nodes else max(most, nodes)
    if Ask.MEMORY_PER_CORE in found:
        found[Ask.MEMORY_PER_CORE] = max(int(memory), 1)
    if found.get(Ask.MEMORY_PER_NODE, 0) > 0:
        found[Ask.MEMORY_PER_NODE] = max(int(memory * on_node), 1)
    _scale_tasks(found, asked, cores, nodes)
    _scale_gpus(found, gpus, nodes)
    return found


def _nodes(asked: Asked, before: int, cores: int, room: Room) -> int:
    """Return the nodes of a job on another number of cores."""
    on_node, memory = room.node_cores, asked.memory_per_core(before)
    if room.node_memory and memory:
        on_node = max(min(on_node, int(room.node_memory / memory)), 1)
    packed = -(-cores // on_node)
    if asked.nodes > -(-before // on_node):
        packed = max(packed, round_half_up(cores * asked.nodes / before))
    return max(min(packed, cores, room.most_nodes(cores)), 1)


def _scale_tasks(found: dict[Ask, Any], asked: Asked, cores: int, nodes: int) -> None:
    """Set the tasks of a job: as wide as before, if its cores divide by that."""
    width = max(asked.number(Ask.CORES_PER_TASK), 1)
    width = next(one for one in range(min(width, cores), 0, -1) if cores % one == 0)
    if Ask.CORES_PER_TASK in found:
        found[Ask.CORES_PER_TASK] = width
    if Ask.TASKS in found:
        found[Ask.TASKS] = cores // width
    if Ask.TASKS_PER_NODE in found:
        found[Ask.TASKS_PER_NODE] = -(-(cores // width) // nodes)


def _scale_gpus(found: dict[Ask, Any], gpus: int, nodes: int) -> None:
    """Set the GPUs of a job, for each node if it asked so."""
    asked = [ask for ask in (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK) if ask in found]
    for ask in asked:
        del found[ask]
    if gpus and asked == [Ask.GPUS_PER_NODE] and gpus % nodes == 0:
        found[Ask.GPUS_PER_NODE] = gpus // nodes
    elif gpus:
        found[Ask.GPUS] = gpus


class MachineRequests(Part):
    """What jobs ask of a machine, by donors of the fitted trace."""

    name: ClassVar[str] = "hot-deck"
    title: ClassVar[str] = "requests of jobs of about the same size and run time"
    source: ClassVar[str] = "Andridge and Little, International Statistical Review 78(1), 2010"

    profiles: tuple[tuple[tuple[str, int | str], ...], ...] = Field(
        min_length=1, description="what donors ask for: names and values of hpcrowd's requests"
    )
    donors: tuple[tuple[int, int, PositiveInt, int, PositiveInt], ...] = Field(
        min_length=1,
        description="place of the profile, kind of job, processors, run time in half doublings of "
        "1 s, and number of jobs",
    )
    rooms: tuple[SeenRoom, ...] = Field(
        min_length=1, description="what jobs of each partition had at most"
    )
    least_donors: int = Field(
        LEAST_DONORS, ge=1, description="least number of jobs that a donor is drawn from"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        known = {ask.name.lower(): ask in WORDS for ask in PASSED_ON}
        for profile in self.profiles:
            for name, value in profile:
                if name not in known or isinstance(value, str) != known[name]:
                    raise ValueError(f"request {name} {value!r}: not known, or of a wrong type")
        for place, *_ in self.donors:
            if not 0 <= place < len(self.profiles):
                raise ValueError(f"profile {place}: there are {len(self.profiles)}")
        seen = {room.partitions for room in self.rooms}
        for one in self._asked:
            if one.partitions not in seen:
                raise ValueError(f"partition {one.partitions!r}: no room is given")
        return self

    @classmethod
    def fit(
        cls,
        workload: Workload,
        kinds: Int64s | None = None,
        *,
        least_donors: int = LEAST_DONORS,
        most_donors: int = MOST_DONORS,
    ) -> Self | None:
        """Return what the jobs of a workload ask for; None if their trace does not say it.

        ``kinds`` are those of jobs; None if the model has only one.

        Raises
        ------
        TraceError
            If the trace has a request that cannot be read.
        """
        requests = workload.requests()
        if requests is None or not set(requests.asked()) & set(PASSED_ON):
            return None
        numbers, places = _distinct(*requests.matrix[list(PASSED_ON)])
        profiles = [_profile(row, requests) for row in numbers.tolist()]
        table = np.column_stack(
            [
                places,
                np.zeros(len(workload), np.int64) if kinds is None else kinds,
                workload.processors,
                steps_of(workload.run_time),
            ]
        ).astype(np.int64)
        table = table[np.lexsort(table.T[::-1])]
        kept = np.unique(np.linspace(0, len(table) - 1, min(len(table), most_donors)).astype(int))
        rows, counts = np.unique(table[kept], axis=0, return_counts=True)
        used, place = np.unique(rows[:, 0], return_inverse=True)
        rows[:, 0] = place
        return cls(
            profiles=tuple(profiles[one] for one in used.tolist()),
            donors=tuple((*row, count) for row, count in
                         zip(map(tuple, rows.tolist()), counts.tolist(), strict=True)),
            rooms=_rooms(workload, [Asked.of(dict(one)) for one in profiles], places),
            least_donors=least_donors,
        )  # fmt: skip

    @cached_property
    def _asked(self) -> tuple[Asked, ...]:
        return tuple(Asked.of(dict(profile)) for profile in self.profiles)

    def draw(
        self,
        drawn: Drawn,
        random: np.random.Generator,
        kinds: Int64s | None = None,
        machine: Machine | None = None,
    ) -> tuple[Drawn, Requests, list[str]]:
        """Return generated jobs with what they ask for, and remarks.

        Without a machine, requests stay within what jobs of the partition had in the fitted trace.
        On a machine they stay within its nodes and limits, and jobs that fit into no partition are
        cut until one accepts them. Requested times end at the longest of the partition, but without
        a machine not before the run time. ``kinds`` are as in :meth:`fit`.
        """
        asked, rooms = self._asked, self._seen
        gate = None
        if machine is not None:
            from hpcrowd.analysis.models.parts.gate import Gate

            gate = Gate(machine)
            asked = tuple(gate.adapted(one) for one in asked)
            rooms = tuple(gate.room(one) for one in asked)
        deck = _Deck.of(self, rooms)
        processors = drawn.processors.copy()
        if gate is not None:
            processors = np.minimum(processors, max(room.cores for room in rooms))
        donor = deck.draw(
            processors,
            drawn.run_time,
            np.zeros(len(drawn), np.int64) if kinds is None else kinds,
            _same_number(drawn, random),
        )
        pairs, of_pair = _distinct(donor, processors)
        longest = np.array([rooms[one].longest_s for one in deck.profile.tolist()])[donor]
        # Without a machine, requested times are not shorter than run times, which are not cut.
        run_time = drawn.run_time if gate is None else np.minimum(drawn.run_time, longest)
        limit = np.minimum(drawn.requested_time, np.maximum(longest, run_time))
        most = np.full(len(pairs), float(UNKNOWN))
        np.maximum.at(most, of_pair, np.where(limit < 0, run_time, limit))
        values, refused = [], np.zeros(len(pairs), bool)
        for place, (one, size) in enumerate(pairs.tolist()):
            profile = int(deck.profile[one])
            what = scaled(asked[profile], int(deck.processors[one]), size, rooms[profile])
            if gate is not None:
                passed = gate.passing(
                    asked[profile], int(deck.processors[one]), size, rooms[profile], most[place]
                )
                refused[place] = passed is None
                what, pairs[place, 1] = passed or (what, size)
            values.append(what)
        requests = Requests(len(drawn))
        for ask in PASSED_ON:
            if ask in WORDS:
                words = [str(one.get(ask, "")) for one in values]
                requests.set_texts(ask, [words[pair] for pair in of_pair.tolist()])
            else:
                numbers = [int(one.get(ask, UNKNOWN)) for one in values]
                requests[ask][:] = np.array(numbers, np.int64)[of_pair]
        found = replace(
            drawn, processors=pairs[of_pair, 1], requested_time=limit, run_time=run_time
        )
        notes = [
            f"{plural(count, 'job')} {what}"
            for what, which in (
                ("with fewer processors than drawn, to fit into a partition",
                 found.processors < drawn.processors),
                ("that would run for longer than a partition allows: cut to its limit",
                 run_time < drawn.run_time),
                ("that the machine rejects", refused[of_pair]),
            )
            if (count := int(which.sum()))
        ]  # fmt: skip
        return found, requests, notes

    @cached_property
    def _seen(self) -> tuple[Room, ...]:
        """Rooms of the fitted trace, by profile."""
        rooms = {room.partitions: room.room for room in self.rooms}
        return tuple(rooms[one.partitions] for one in self._asked)


def steps_of(run_time: Any) -> Int64s:
    """Return run times (s) in :data:`STEPS` of doublings of 1 s, rounded; at least 0."""
    steps: Int64s = np.rint(STEPS * np.log2(np.maximum(run_time, 1.0))).astype(np.int64)
    return steps


def _distinct(*columns: Int64s) -> tuple[Int64s, Int64s]:
    """Return the distinct rows of a table of these columns, and which of them each row is."""
    rows, place = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return rows, place.reshape(-1)


def _profile(numbers: list[int], requests: Requests) -> tuple[tuple[str, int | str], ...]:
    """Return the names and values of requests that are :data:`PASSED_ON`, without unknown ones."""
    return tuple(
        (ask.name.lower(), requests.words[ask][number] if ask in WORDS else number)
        for ask, number in zip(PASSED_ON, numbers, strict=True)
        if number != UNKNOWN
    )


def _rooms(workload: Workload, asked: list[Asked], places: Int64s) -> tuple[SeenRoom, ...]:
    """Return what jobs of each partition had at most.

    ``asked`` is what jobs ask for, and ``places`` the place of each job's.
    """
    pairs, of_pair = _distinct(places, workload.processors)
    limits = np.full(len(pairs), float(UNKNOWN))
    np.maximum.at(limits, of_pair, workload.requested_time)
    used: dict[str, list[tuple[int, ...]]] = {}
    for (place, size), limit in zip(pairs.tolist(), limits.tolist(), strict=True):
        one = asked[place]
        used.setdefault(one.partitions, []).append(one.used(size, limit))
    return tuple(SeenRoom.of(name, used[name]) for name in sorted(used))


def _same_number(drawn: Drawn, random: np.random.Generator) -> Any:
    """Return a number from 0 to 1 for each job, one for all jobs of a bag and its followers."""
    bag = drawn.bag.copy()
    for job in np.flatnonzero(drawn.follows >= 0).tolist():  # these come after what they follow
        bag[job] = bag[drawn.follows[job]]
    names, place = np.unique(bag, return_inverse=True)
    return random.random(len(names))[place]


@dataclass(frozen=True)
class _Deck:
    """The donors as arrays, shape (donors,), in the order of their profiles.

    The first five are as in :attr:`MachineRequests.donors`; ``cores`` and ``longest_s`` are what
    the partition of the donor has room for, ``least`` is the least number of jobs to draw from.
    """

    profile: Int64s
    kind: Int64s
    processors: Int64s
    step: Int64s
    count: Int64s
    cores: Int64s
    longest_s: Any
    least: int

    @classmethod
    def of(cls, model: MachineRequests, rooms: tuple[Room, ...]) -> Self:
        """Return the donors of a model whose profiles have these rooms."""
        profile, kind, processors, step, count = np.array(model.donors, np.int64).T
        cores = np.array([room.cores for room in rooms], np.int64)[profile]
        longest = np.array([room.longest_s for room in rooms])[profile]
        return cls(profile, kind, processors, step, count, cores, longest, model.least_donors)

    def draw(self, processors: Int64s, run_time: Any, kinds: Int64s, number: Any) -> Int64s:
        """Return the donor of each job, shape (jobs,).

        A number from 0 to 1 decides on the donor of each job.
        """
        # Jobs of about the same size and run time have the same donors, but for limits in between.
        bounds, rooms = np.unique(self.longest_s), np.unique(self.cores)
        unique, of_key = _distinct(
            _about(processors),
            steps_of(run_time),
            kinds,
            np.searchsorted(bounds, run_time),
            np.searchsorted(rooms, processors),
        )
        order = np.argsort(of_key, kind="stable")
        edges = np.append(0, np.cumsum(np.bincount(of_key, minlength=len(unique))))
        found = np.empty(len(processors), np.int64)
        longest, cores = np.append(bounds, np.inf), np.append(rooms, np.iinfo(np.int64).max)
        for place, (size, step, kind, bound, room) in enumerate(unique.tolist()):
            mine = order[edges[place] : edges[place + 1]]
            near = self._near(size, step, kind, longest[bound], cores[room])
            ends = np.cumsum(self.count[near])
            drawn = np.searchsorted(ends, number[mine] * ends[-1], side="right")
            found[mine] = near[np.minimum(drawn, len(near) - 1)]
        return found

    def _near(self, size: int, step: int, kind: int, longest: float, cores: int) -> Int64s:
        """Return the donors that one is drawn from for jobs of a size, run time and kind.

        Those whose partition has no room for such jobs do not count if others do: ``longest`` and
        ``cores`` are the least of the limits of partitions that such jobs keep, s and processors.
        """
        some = np.ones(len(self.profile), bool)
        for rule in (self.cores >= cores, self.longest_s >= longest, self.kind == kind):
            if (some & rule).any():
                some &= rule
        rows = np.flatnonzero(some)
        distance = np.log2(self.processors[rows] / size) ** 2
        distance += ((self.step[rows] - step) / STEPS) ** 2
        # As each donor is one job or more, the nearest ones are enough.
        first = min(self.least, len(rows))
        nearest = np.sort(np.argpartition(distance, first - 1)[:first])
        nearest = nearest[np.argsort(distance[nearest], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(self.count[rows][nearest]), self.least))
        last = distance[nearest[min(enough, first - 1)]]
        near: Int64s = rows[distance <= last]
        return near


def _about(processors: Int64s) -> Int64s:
    """Return processors, rounded to :data:`SIZE_STEPS` steps in a doubling if they are many."""
    rounded = 2 ** (np.rint(SIZE_STEPS * np.log2(processors)) / SIZE_STEPS)
    return np.where(processors <= LARGEST_EXACT, processors, np.rint(rounded)).astype(np.int64)
