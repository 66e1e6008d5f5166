"""The two versions of Feitelson's model, with parameters for where there is no trace."""

from __future__ import annotations

from typing import ClassVar, Self, override

from analysis.models.chosen import chosen_users, gap_for_load
from analysis.models.feitelson import SMALL_SIZES, Feitelson

#: Mean run times of the two stages of 1996 in arbitrary units, their probabilities for the
#: smallest jobs and for those as large as the machine; unconfirmed. Their mean is 1.3 to 2.5 units;
#: the page says "around 2".
MEANS_1996, SMALL_1996, LARGE_1996 = (1.0, 7.0), (0.95, 0.05), (0.75, 0.25)

#: s; what one of the arbitrary units of 1996 stands for. Chosen here.
UNIT_1996_S = 1000.0

#: The same of the three stages of 1997, in s. That there are three is unconfirmed, and the numbers
#: are chosen here, so that the mean is that of 1996 with our unit.
MEANS_1997, SMALL_1997, LARGE_1997 = (60.0, 900.0, 7200.0), (0.5, 0.4, 0.1), (0.3, 0.4, 0.3)


class Feitelson1996(Feitelson):
    """The first version: run times in arbitrary units, in two stages."""

    name: ClassVar[str] = "feitelson96"
    title: ClassVar[str] = "harmonic sizes, hyperexponential run times, repeated executions"
    stages: ClassVar[int] = 2

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        return _published(cls, machine, UNIT_1996_S, MEANS_1996, SMALL_1996, LARGE_1996)


class Feitelson1997(Feitelson):
    """The second version, which the archive recommends: run times in s, in three stages."""

    name: ClassVar[str] = "feitelson97"
    title: ClassVar[str] = "the same with run times in seconds, in three stages"
    stages: ClassVar[int] = 3

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        return _published(cls, machine, 1.0, MEANS_1997, SMALL_1997, LARGE_1997)


def _published[F: Feitelson](
    kind: type[F],
    machine: int,
    unit_s: float,
    means: tuple[float, ...],
    small: tuple[float, ...],
    large: tuple[float, ...],
) -> F:
    made = kind(
        small_sizes=min(SMALL_SIZES, machine),
        unit_s=unit_s,
        means=means,
        shares_small=small,
        shares_large=large,
        users=chosen_users(),
        notes=(
            f"{kind.name}: order of sizes, exponent of run lengths and the form of run times are "
            "published; means, probabilities, factors and arrivals are unconfirmed",
        ),
    )
    gap = gap_for_load(made.work(machine), machine)
    return made.model_copy(update={"published_gap_s": gap})
