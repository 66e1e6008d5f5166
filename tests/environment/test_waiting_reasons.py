"""Why jobs wait under each policy: tiny stories, with the words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hpcrowd.environment import SwitchPolicy

from tests.environment.reason_cases import FULL, STORY, H, engines, told


@engines
def test_fcfs(plain: bool) -> None:
    """The head knows when it may start; the others who is before them."""
    behind = "waits behind job 2: fcfs allows no overtaking"
    head = "first in the queue: requests 4 processors, 2 are free; start expected Mon 04:00"
    assert {2: head, 3: behind, 4: behind, 5: behind, 6: behind} == told("fcfs", plain)


@engines
def test_easy(plain: bool) -> None:
    """Job 3 takes what is spare next to the head at 04:00, so there is no room for the rest."""
    assert {
        2: "first in the queue: requests 4 processors, none is free; start expected Mon 04:00",
        4: "requests 1 processor, none is free",
        5: "requests 5 processors, none is free",
        6: "requests 3 processors, none is free",
    } == told("easy", plain)


@engines
def test_easy_keeps_the_head_from_being_delayed(plain: bool) -> None:
    """A head that needs the whole machine leaves nothing spare: long jobs would delay it."""
    rows = [STORY[0], (60, 2 * H, 8, 2 * H, 2, 1, 1), *STORY[2:3], (180, 5 * H, 1, 3 * H, 3, 1, 2)]
    assert {
        2: "first in the queue: requests 8 processors, 2 are free; start expected Mon 04:00",
        3: "fits, but would delay job 2 (reserved Mon 04:00): expected to run 5.0 h",
    } == told("easy", plain, rows=rows, until=150)
    late = told("easy", plain, rows=rows, until=H)
    assert "requests 2 processors, 1 is free" == late[3], "job 4 is believed to end in time"


@engines
@pytest.mark.parametrize(
    ("policy", "order", "places"),
    [
        ("sjf", "by estimate", (4, 2, 3)),
        ("ljf", "by estimate, large ones first", (3, 2, 4)),
        ("order:by=processors", "by processors", (3, 2, 4)),
        ("order:by=-processors", "by processors, large ones first", (4, 2, 3)),
    ],
)
def test_orders(policy: str, order: str, places: tuple[int, int, int], plain: bool) -> None:
    """Another order than by submission is reported, with the place in it."""
    head, second, third = places
    found = told(policy, plain, rows=FULL)
    room = f"requests { {2: 4, 3: 2, 4: 5}[head] } processors"
    behind = f"waits behind job {head}: {policy.partition(':')[0]} allows no overtaking"
    assert {
        head: f"first {order}: {room}, none is free; start expected Mon 04:00",
        second: f"place 2 {order}: {behind}",
        third: f"place 3 {order}: {behind}",
    } == found
    assert [*places] == [*found]


@engines
def test_orders_with_backfilling(plain: bool) -> None:
    """The place is shown for those that find no room, too."""
    wide = "by processors, large ones first"
    assert {
        4: f"first {wide}: requests 5 processors, none is free; start expected Mon 04:00",
        2: f"place 2 {wide}: requests 4 processors, none is free",
        3: f"place 3 {wide}: requests 2 processors, none is free",
    } == told("easy:order=-processors", plain, rows=FULL)
    assert {
        4: "first by seniority and criticality: requests 5 processors, none is free; "
        "start expected Mon 04:00",
        2: "place 2 by seniority and criticality: requests 4 processors, none is free",
        3: "place 3 by seniority and criticality: requests 2 processors, none is free",
    } == told("creasy", plain, rows=FULL)


@engines
def test_conservative_tells_its_plan(plain: bool) -> None:
    """Each job has the start that is planned for it."""
    assert {
        2: "planned for Mon 04:00",
        3: "planned for Mon 04:00",
        4: "planned for Mon 06:00",
    } == told("conservative", plain, rows=FULL)


@engines
def test_selective_tells_who_has_a_reservation(plain: bool) -> None:
    """Who has waited long enough has one; the others hear how far they are from it."""
    waits = "none is free; no reservation below a slowdown of 1.50, it would have"
    found = told("selective:threshold=1.5", plain, rows=FULL)
    assert {
        2: f"requests 4 processors, {waits} 1.49",
        3: f"requests 2 processors, {waits} 1.19",
        4: "requests 5 processors, none is free; gets a reservation next",
    } == found
    rows = [*FULL, (H - 1, 60, 1, 60, 5, 1, 1)]  # its arrival makes the scheduler look
    assert "planned for Mon 04:00" == told("selective:threshold=1.5", plain, rows=rows)[4]


@engines
def test_selective_keeps_reservations(plain: bool) -> None:
    """A long job that fits would take processors that are kept for another from 04:00 on."""
    rows = [STORY[0], (60, 600, 8, 600, 2, 1, 1), (1200, 60, 1, 60, 4, 1, 1)]
    rows.append((1300, 5 * H, 2, 5 * H, 3, 1, 2))
    found = told("selective:threshold=1.5", plain, rows=rows)
    assert "planned for Mon 04:00" == found[2]
    assert (
        "fits, but would delay job 2 (reserved Mon 04:00): expected to run 5.0 h; no reservation "
        "below a slowdown of 1.50, it would have 1.13" == found[4]
    )


@engines
def test_limits(plain: bool, tmp_path: Path) -> None:
    """A limit is named with whose it is, and where the head counts for it too."""
    found = told("multi-queue:user-jobs=1", plain)
    assert (
        "user 3 is at its limit of 1 job at once"
        == (told("multi-queue:user-jobs=1", plain, processors=9)[4])
    )
    assert "requests 1 processor, none is free" == found[4], "what blocks it first is first"
    assert (
        "user 1 is at its limit of 1 job at once"
        == (told("multi-queue:user-jobs=1", plain, rows=[STORY[0], STORY[5]])[2])
    )
    again = [*STORY[:2], (90, H, 1, H, 2, 1, 1)]
    assert (
        "user 2 is at its limit of 1 job at once, with job 2, which goes first"
        == (told("multi-queue:user-jobs=1", plain, rows=again)[3])
    )
    found = told("multi-queue:queue-processors=7", plain, rows=[STORY[0], (60, H, 2, H, 2, 1, 1)])
    assert {2: "requests 2 processors, queue 1 holds 6 and may hold 7"} == found
    file = tmp_path / "queues.toml"
    file.write_text("[[queues]]\nqueues = [1]\npriority = 2\nuser-jobs = 1\n")
    found = told(f"multi-queue:file={file}", plain, rows=[STORY[0], (60, H, 2, H, 1, 1, 1)])
    expected = "user 1 in queue 1 is at its limit of 1 job at once"
    assert {2: f"place 1 by priority of the queues: {expected}"} == found


@engines
def test_fair_share_tells_the_place(plain: bool) -> None:
    """Who used much goes last, though it came before others of that user's size."""
    rows = [STORY[0], (60, H, 3, H, 1, 1, 1), (120, 2 * H, 4, 2 * H, 2, 1, 1)]
    assert {
        3: "first by fair share: requests 4 processors, 2 are free; start expected Mon 04:00",
        2: "place 2 by fair share: requests 3 processors, 2 are free",
    } == told("fair-share", plain, rows=rows)


@engines
def test_adaptive_shows_the_reasons_of_the_policy_in_charge(plain: bool) -> None:
    """Selective at first; FCFS after a switch."""
    assert told("selective", plain) == told("adaptive", plain)
    switch = [SwitchPolicy(30 * 60, "fcfs")]
    found = told("adaptive", plain, platform=switch)
    assert "waits behind job 2: fcfs allows no overtaking" == found[5]
