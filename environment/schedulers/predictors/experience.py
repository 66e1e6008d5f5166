"""Predictors that compare jobs: their common base, the last jobs of a user, nearest neighbours.

Histories differ in which jobs are "the last N":

``submission``
    the N jobs submitted before this one; a job that has not ended counts among them but is not used
``completion``
    the N jobs that ended last
``category``
    the N jobs that ended last among those that share the attributes of the template

:class:`LastTwo` is the predictor of Tsafrir, Etsion and Feitelson 2007: the mean run time of the
user's two latest jobs that have ended; with one such job its run time, with none the requested
time. "Latest" goes by submission. As an option it is at most the requested time.

:class:`Nearest` averages the most similar jobs (thesis Eqs. 8.1 to 8.3). The distance of two jobs
is the weighted quadratic mean of the differences of their attributes: 0 or 1 for user, group, queue
and job name; the difference of normalized values for processors, requested time and requested
memory (Eqs. 8.1, 8.2). The run times of the K nearest among the last N jobs are averaged with
weights exp(-(distance / bandwidth)^2) (Eq. 8.3). Before any job has ended the requested time is
predicted. The thesis names the parameters but no values for them, and those of the implementation
it compares with were found by a search that is not published: the defaults here are unconfirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import Groups
from hpcrowd.environment.errors import PredictorError, QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable
from hpcrowd.environment.schedulers.base import options_of
from hpcrowd.environment.schedulers.estimates import Events, Predictor, not_begun
from hpcrowd.environment.schedulers.predictors.kernel import experience as K
from hpcrowd.environment.schedulers.predictors.kernel import prediction as kernel
from hpcrowd.environment.schedulers.predictors.kernel.experience import NOMINAL, NUMERIC, Experience
from hpcrowd.environment.schedulers.predictors.kernel.prediction import LAST_TWO, NEAREST

History = Literal["submission", "completion", "category"]
Bounds = Literal["table", "seen"]

#: The kinds of history and of bounds, by name.
HISTORIES: tuple[str, ...] = get_args(History)
BOUNDS: tuple[str, ...] = get_args(Bounds)

#: The nominal attributes of a job, in the order of thesis section 8.3.3, a letter each.
ATTRIBUTES = "ugqj"

#: Rows that arrays have at first, and buckets of each hash table for each row.
FIRST_ROOM, BUCKETS = 256, 2


class ComparingPredictor(Predictor):
    """Base of the predictors that look for similar jobs.

    Parameters
    ----------
    history
        Which jobs are the last N, see :mod:`hpcrowd.environment.schedulers.predictors.experience`.
    bounds
        Jobs whose smallest and largest values normalize numeric attributes: ``table``, all jobs
        known at the beginning (for a recorded trace, the whole trace; only requests are used, never
        run times), or ``seen``, those that have arrived. Both ranges widen if a job lies outside.
    """

    #: The compiled model.
    _model: int

    #: Its settings, in the order of the compiled model.
    _settings: Float64s

    #: The nominal attributes that make a category, and those that make a class.
    _masks: tuple[int, int]

    #: K, the larger one if there are two.
    _most_neighbours: int

    #: Whether numeric attributes are compared.
    _numbers = True

    #: The kinds of history that it knows.
    _histories = HISTORIES

    def __init__(self, history: str, bounds: str) -> None:
        for what, value, known in (
            ("history", history, self._histories),
            ("bounds", bounds, BOUNDS),
        ):
            if value not in known:
                raise QuantityError(f"{what} {value!r}: {not_one_of(value, known)}")
        self.history = history
        self.bounds = bounds
        self._jobs: JobTable | None = None
        self._arrays: dict[str, Any] = {}
        self._groups = Groups()

    def begin(self, jobs: JobTable) -> None:
        """Take the table of jobs; forget everything earlier."""
        self.check_ready()
        self._jobs = jobs
        counters = np.zeros(K.COUNTERS, np.int64)
        counters[K.KIND] = HISTORIES.index(self.history)
        counters[K.CATEGORY_MASK], counters[K.CLASS_MASK] = self._masks
        counters[K.NUMBERS] = K.NUMERIC if self._numbers else 0
        bounds = np.array([[np.inf, -np.inf]] * K.NUMERIC)
        if self.bounds == "table" and len(jobs):
            columns = (jobs.processors, jobs.requested_time, jobs.requested_memory)
            bounds[:] = [[column.min(), column.max()] for column in columns]
        wanted = self._most_neighbours
        room = max(len(jobs), FIRST_ROOM)
        self._arrays = {
            "compared": np.array(K.COMPARED),
            "settings": self._settings,
            "counters": counters,
            **_arrays(room),
            "bounds": bounds,
            "keys": np.zeros(wanted, np.int64),
            "best": np.zeros(wanted, np.int64),
        }

    def arrived(self, rows: Int64s, now: int) -> None:
        """Take note of jobs that joined the queue."""
        _, memory = self._ready()
        kernel.meet_all(memory, np.asarray(rows, np.int64))

    def ended(self, rows: Int64s, now: int) -> None:
        """Take note of jobs that ended."""
        _, memory = self._ready()
        kernel.learn_all(memory, np.asarray(rows, np.int64), now)

    def predict(self, rows: Int64s, now: int) -> Int64s:
        """Return the predicted run times of jobs that have arrived, s."""
        jobs, memory = self._ready()
        rows = np.asarray(rows, np.int64)
        predicted = np.empty(len(rows), np.int64)
        absent = kernel.predict_all(self._model, memory, rows, predicted)
        if absent != K.NONE:
            raise PredictorError(
                f"{self.name}: job {jobs.number[absent]} has not arrived; call "
                "arrived(rows, now) first"
            )
        return predicted

    def follow(self, events: Events) -> Int64s:
        """Process events in compiled code, with the same result as one by one."""
        jobs, memory = self._ready()
        predicted = np.full(len(jobs), UNKNOWN, np.int64)
        kernel.follow(self._model, memory, events.time, events.row, events.kind, predicted)
        return predicted

    def to_json(self) -> dict[str, Any]:
        """Return its settings as plain data."""
        settings = {name: getattr(self, name) for name in options_of(type(self))}
        return {
            name: one.tolist() if isinstance(one, np.ndarray) else one
            for name, one in settings.items()
        }

    def _ready(self) -> tuple[JobTable, Experience]:
        """Return the table, and what is kept with room for every job of the table."""
        jobs, arrays = self._jobs, self._arrays
        if jobs is None:
            raise not_begun(self.name)
        old = len(arrays["jobs"])
        grows = len(jobs) > old
        if grows:
            for name, array in _arrays(max(len(jobs), 2 * old)).items():
                if name != "buckets":
                    array[:old] = arrays[name]
                arrays[name] = array
        memory = self._groups.of(Experience, jobs.matrix, *arrays.values())
        if grows:
            K.hash_anew(memory)
        return jobs, memory


def _arrays(room: int) -> dict[str, Any]:
    """Return empty arrays for a number of jobs, in the order of :class:`Experience`."""
    size = 1 << (BUCKETS * room - 1).bit_length()
    return {
        "jobs": np.full((room, K.JOB_FIELDS), K.NONE, np.int64),
        "classes": np.empty((room, K.CLASS_FIELDS), np.int64),
        "categories": np.empty((room, K.CATEGORY_FIELDS), np.int64),
        "buckets": np.full((2, size), K.NONE, np.int64),
        "vectors": np.empty((room, K.NUMERIC + 1)),
    }


def check_whole(name: str, value: Any, least: int) -> int:
    """Return ``value`` if it is a whole number of at least ``least``.

    Raises
    ------
    QuantityError
        When it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise QuantityError(f"{name} {value!r}: not a whole number of at least {least}")
    return int(value)


def check_number(name: str, value: Any, least: float = 0.0) -> float:
    """Return ``value`` if it is a finite number of at least ``least``.

    Raises
    ------
    QuantityError
        When it is not.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.floating | np.integer)
        or not np.isfinite(value)
        or value < least
    ):
        raise QuantityError(f"{name} {value!r}: not a number of at least {least:g}")
    return float(value)


def template_mask(template: str) -> int:
    """Return the attributes of a template such as ``ug.j`` as bits.

    Raises
    ------
    QuantityError
        When it holds anything but each of ``u``, ``g``, ``q`` and ``j`` at most once, and dots.
    """
    letters = [letter for letter in template if letter != "."]
    if len(set(letters)) != len(letters) or not set(letters) <= set(ATTRIBUTES):
        raise QuantityError(
            f"template {template!r}: not made of u, g, q, j (user, group, queue, job name), each "
            "at most once; write for example ug.j, or .... for none"
        )
    return sum(1 << ATTRIBUTES.index(letter) for letter in letters)


#: Jobs that are averaged (Tsafrir et al. 2007, as thesis section 8.1 describes it).
JOBS = 2


class LastTwo(ComparingPredictor):
    """Predicts the mean run time of the user's latest jobs that have ended.

    Parameters
    ----------
    jobs
        How many.
    cap
        Whether to predict at most the requested time.
    history
        What "latest" goes by: ``submission``, or ``completion``.
    """

    _histories = ("submission", "completion")
    _model = LAST_TWO
    _numbers = False

    def __init__(self, *, jobs: int = JOBS, cap: bool = False, history: str = "submission") -> None:
        super().__init__(history, "seen")
        self.jobs = check_whole("jobs", jobs, 1)
        self.cap = cap
        self.name = "last-two"
        self._settings = np.array([self.jobs, cap], np.float64)
        self._masks, self._most_neighbours = (1, 1), self.jobs


#: Jobs that the history reaches back, and neighbours that are averaged (unconfirmed).
HISTORY, NEIGHBOURS = 2000, 5

#: Weights of user, group, queue, job name, processors, requested time and requested memory: all
#: alike (unconfirmed).
WEIGHTS = (1.0,) * (NOMINAL + NUMERIC)

#: A bandwidth that stands for the largest distance among the neighbours, as Eq. 8.3 allows.
LARGEST = 0.0


class Nearest(ComparingPredictor):
    """Predicts the weighted average of the nearest jobs.

    Parameters
    ----------
    n
        Number of jobs in the history.
    k
        Number of neighbours that are averaged.
    weights
        Weights of user, group, queue, job name (executable), processors, requested time and
        requested memory.
    bandwidth
        Width of the kernel, a distance from 0 to 1; 0 stands for the largest among the neighbours.
    cap
        Whether to predict at most the requested time.
    history
        ``submission`` or ``completion``, see :mod:`environment.schedulers.predictors.experience`.
    bounds
        See :class:`~hpcrowd.environment.schedulers.predictors.experience.ComparingPredictor`.
    """

    _histories = ("submission", "completion")
    _model = NEAREST

    def __init__(
        self,
        *,
        n: int = HISTORY,
        k: int = NEIGHBOURS,
        weights: Sequence[float] = WEIGHTS,
        bandwidth: float = LARGEST,
        cap: bool = False,
        history: str = "submission",
        bounds: str = "table",
    ) -> None:
        super().__init__(history, bounds)
        if len(weights) != NOMINAL + NUMERIC:
            raise QuantityError(
                f"weights {tuple(weights)}: {len(weights)} of them; give {NOMINAL + NUMERIC}, for "
                "user, group, queue, job name, processors, requested time, requested memory"
            )
        self.n, self.k = check_whole("n", n, 1), check_whole("k", k, 1)
        self.weights = np.array([check_number("weight", weight) for weight in weights])
        if not self.weights.any():
            raise QuantityError("weights: all are 0; at least one must be positive")
        self.bandwidth = check_number("bandwidth", bandwidth)
        self.cap = cap
        self.name = "nearest"
        first = [self.n, self.k, self.bandwidth, cap]
        self._settings = np.array([*first, *self.weights], np.float64)
        self._masks = 0, sum(1 << place for place in range(NOMINAL) if self.weights[place])
        self._most_neighbours = self.k
