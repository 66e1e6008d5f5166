"""Numbers, memory, files and messages at their limits: one line, in time; whose code is loaded."""

import itertools
import os
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, JobTable, jobs_from_trace, parse_swf, read_trace
from hpcrowd.agents.behaviours.profiles import WeeklyProfile
from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import time_ticks
from hpcrowd.analysis.models.jobs import feitelson
from hpcrowd.analysis.models.parts import lublin, wavelet
from hpcrowd.environment.clock import CYCLE, DAY, WEEK, moment
from hpcrowd.environment.errors import HpcrowdError, ParseError, SignalError, echo, harmless
from hpcrowd.environment.limits import inputs, numbers
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.registry import NotLoaded, Trust, file_of, own, source_of, trust, trusting
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.errors import QuantityError, TraceError

LOG = "; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 90 -1 1 1 1 1 1 -1 -1 -1\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a log of one job."""
    (tmp_path / "log.swf").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(result):
    """Return the one line of a command that refuses its input."""
    code, out, err = result
    assert (2, "") == (code, out)
    assert "Traceback" not in err
    return " ".join(err.split())


# ---- numbers and memory --------------------------------------------------------------------------

GRID = {"processors": "8", "speed": "1.0", "days": "0.1", "model": '"lublin"'}
STUDY = '[scenario]\nkind = "replay"\ntrace = "log.swf"\n[axes]\nseed = 1000000000\n'


def grid(**change):
    """Return the description of a grid with a change."""
    lines = (f"{key} = {value}\n" for key, value in (GRID | change).items())
    return "[clusters.a]\n" + "".join(lines)


@pytest.mark.parametrize(
    ("command", "settings", "said"),
    [
        *(("grid it.toml --json", grid(**{name: value}), f"clusters.a.{name}")
          for name, value in (
              ("processors", "1000000000"), ("speed", "1e-300"), ("speed", "1e30"),
              ("speed", "nan"), ("days", "2147483648"), ("days", "inf"), ("days", "1e-9"))),
        ("sweep it.toml", STUDY, "line 5: axes.seed 1,000,000,000: at most"),
        *((command, "", "") for command in (
            "generate lublin --processors 64 --jobs 10000000000 -o new.swf",
            "generate lublin --processors 64 --days 1e300 -o new.swf",
            "replay log.swf --processors 1000000000x", "replay log.swf --speed 0.000000001x",
            "replay log.swf --sessions arrival:9999999999w", f"replay log.swf --seed {'9' * 40}",
            "demo --days 2147483648 --out new", "judge lublin log.swf --seeds 999999999999",
            "stats log.swf --time-scale 9999999999w")),
    ],
)  # fmt: skip
def test_numbers(here, call, command, settings, said):
    """A number that no machine has is refused before anything is allocated or written."""
    (here / "it.toml").write_text(settings)
    began = time.process_time()
    assert said in refused(call(*command.split()))
    assert time.process_time() - began < 5
    assert ["it.toml", "log.swf"] == sorted(path.name for path in here.iterdir())


def test_memory_is_estimated(monkeypatch):
    """What does not fit into the free memory is refused with both numbers; small things never."""
    monkeypatch.setattr(numbers, "free_memory", lambda: 10**8)
    numbers.check_memory("a few jobs", 10**6, "take fewer")
    with pytest.raises(QuantityError, match=r"jobs: needs about 9\.6 GB .*, 100 MB are free"):
        JobTable(50_000_000)


def test_free_memory(monkeypatch):
    """It is the least of machine, group and process; where none says, nothing is refused."""
    for name, free in (("_machine", 7), ("_group", 5), ("_process", None)):
        monkeypatch.setattr(numbers, name, lambda free=free: free)
    assert 5 == numbers.free_memory()
    for name in ("_machine", "_group"):
        monkeypatch.setattr(numbers, name, lambda: None)
    assert numbers.free_memory() is None
    numbers.check_memory("jobs", 1e30, "take fewer")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30, 1e19])
def test_rounding_does_not_overflow(value):
    """A number that no int64 holds is an error, for one number and in an array."""
    with pytest.raises(QuantityError, match="too large"):
        round_half_up(value)
    with pytest.raises(QuantityError, match="too large"), np.errstate(invalid="ignore"):
        round_half_up(np.array([1.0, value]))


def test_sums_that_overflow_name_the_job(make_trace):
    """A corrupt run time whose processor-seconds exceed int64 names its job."""
    jobs = [{"submit": 0, "run": 60, "requested_processors": 1, "number": 1},
            {"submit": 9, "run": 2.0**53, "requested_processors": 4096, "number": 2}]  # fmt: skip
    with pytest.raises(TraceError, match=r"the largest is job 2 with 4,096 processors"):
        jobs_from_trace(make_trace(*jobs))


STOCKHOLM = ZoneInfo("Europe/Stockholm")
CLOCK = Clock(843480000, STOCKHOLM, known=True)


@pytest.mark.parametrize(
    ("work", "estimate"),
    [
        pytest.param(lambda count: curves.weekly_rates(np.array([0, count * 3600]), CLOCK),
                     curves.BYTES_PER_HOUR, marks=pytest.mark.slow),
        (lambda count: lublin._day(np.array([0.0, 1800.0 * count])), lublin.BYTES_PER_HALF_HOUR),
        (lambda count: feitelson.size_shares(count, 1.5, 3, 1.2, 2.0), feitelson.BYTES_PER_SIZE),
        (lambda count: wavelet.integrate_and_fire(np.full(count // 10, 10.0), 60, 0),
         wavelet.BYTES_PER_ARRIVAL),
    ],
    ids=["hours", "half hours", "sizes", "arrivals"],
)  # fmt: skip
def test_estimates_of_memory_are_measured(work, estimate):
    """What is estimated before it is allocated is what is used at the peak."""
    work(200_000)  # what is kept for the next time, such as offsets of time zones, is not counted
    tracemalloc.start()
    try:
        work(200_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.7 * peak < 200_000 * estimate < 1.5 * peak


# ---- the calendar --------------------------------------------------------------------------------


@pytest.mark.parametrize("years", [400, 8000, 40_000_000])
def test_calendar_after_9999(years):
    """The calendar repeats every 400 years, with the same weekdays and summer time."""
    clock = CLOCK
    # Stockholm's zone file is complete up to 2037; later years follow its last rule.
    base = 60 * 365 * DAY
    later = base + years // 400 * 146_097 * DAY
    for second in range(base, base + 53 * WEEK, 3 * DAY + 3600):
        assert clock.wall(second) % WEEK == clock.wall(later - base + second) % WEEK
    assert moment(clock, later)[:4] == moment(clock, base)[:4]
    assert clock.date(later).split("-")[0] == str(int(clock.date(base)[:4]) + years)


@pytest.mark.parametrize(
    ("start", "days", "label", "name"),
    [
        (253402300800 - DAY, 5, "Sat 1 Jan", "local time 9999, Europe/Stockholm"),
        (253402300800 - DAY, 1200, "Jan 10000", "local time, Europe/Stockholm"),
        (9 * 10**12, 1200, "Jan 287169", "local time, Europe/Stockholm"),
    ],
)
def test_axes_after_9999(start, days, label, name):
    """Axes of pictures go on after the year 9999, and over its end, with the true years."""
    places, texts, below = time_ticks(Clock(start, STOCKHOLM, known=True), 0, days * DAY)
    assert (label, name) == (texts[0], below)
    assert len(texts) == len(places) > 4
    assert places == sorted({place for place in places if 0 <= place <= days * DAY})


@pytest.mark.parametrize("span", [CYCLE, 5 * CYCLE + 3 * WEEK, 2**50])
def test_activity_over_centuries(span):
    """Activity over centuries is counted in cycles of the calendar, and found back."""
    clock = Clock(3 * 10**9, STOCKHOLM, known=True)
    profile = WeeklyProfile(np.arange(1, 169))
    rest = span % CYCLE
    active = profile.between(clock, 0, span)
    assert active == span - rest + profile.between(clock, 0, rest)
    assert profile.after(clock, 0, active) == pytest.approx(span, abs=1)


@pytest.mark.parametrize("users", ["fluid", "distribution", "think-time-windows", "generative"])
@pytest.mark.parametrize(("at", "run"), [(2**52, 60), (400, 2**52)])
def test_one_corrupt_time(here, call, users, at, run):
    """A time after the year 9999 gives a result, or one line, in behaviours with a clock."""
    more = "".join(
        f"{n} {n * 300} 0 60 1 -1 -1 1 90 -1 1 {n % 3} 1 1 1 -1 -1 -1\n" for n in range(2, 40)
    )
    bad = f"50 {at} 0 {run} 1 -1 -1 1 {run} -1 1 1 1 1 1 -1 -1 -1\n"
    head = "; UnixStartTime: 843480000\n; TimeZoneString: Europe/Stockholm\n"
    (here / "log.swf").write_text(head + LOG + more + bad)
    code, _, err = call("replay", "log.swf", "--users", users, "--json")
    assert code in (0, 2), err
    assert "Traceback" not in err


# ---- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        repr("Q" * 5000), repr("Q " * 5000), repr(["Q"] * 5000), f"{'Q' * 5000}: {'Q' * 5000!r}",
        "Q " * 500,
    ],
    ids=range(5),
)  # fmt: skip
def test_echoes_are_short(message):
    """A long value is shortened in the middle; what is around it stays."""
    said = str(HpcrowdError(f"x {message}: not a number"))
    assert said.count("Q") < 200
    assert said.endswith("not a number")
    assert " ... " in said


def kinds_of(error):
    """Return all kinds of an error."""
    return {below for kind in error.__subclasses__() for below in (kind, *kinds_of(kind))}


def test_echoes_are_harmless(here, call):
    """Control characters become escapes, and lines one line, in all errors; other text stays."""
    assert r"a \x1b]0;title\x07 b c é" == harmless("a \x1b]0;title\x07 b\nc é")
    assert r"'\x1b[31m'" == echo("\x1b[31m")
    quoted = "the users' own times and the clusters' names: " + "word " * 30
    assert quoted == harmless(quoted)
    for made in (ParseError("a\nb", 1, "c\n", "d\ne", "f\ng"), SignalError("a\n", "b\nc", "d\n")):
        assert str(made).isprintable()
    for kind in (HpcrowdError, *kinds_of(HpcrowdError)):
        HpcrowdError.__init__(made := kind.__new__(kind), "a\nb")
        assert "a b" == str(made), kind
    line = refused(call("replay", "log.swf", "--seed", "\x1b[31m" + "Q" * 3000))
    assert "\x1b" not in line
    assert line.count("Q") < 200


# ---- files and pipes -----------------------------------------------------------------------------


READERS = (
    "stats @", "replay @", "convert @ new.csv", "run @", "grid @.toml", "sweep @",
    "replay log.swf --users @.toml", "replay log.swf --estimates @.json",
    "generate @.json --jobs 9 -o new.swf",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "device"),
    [
        *((command, "/dev/zero") for command in READERS),
        *((command, "/") for command in READERS[::3]),
        ("stats @", "/dev/random"),
    ],
)
def test_devices_are_refused(here, call, device, command):
    """What has no end, and a folder, is refused at once by everything that reads a file."""
    words = []
    for word in command.split():
        if word.startswith("@"):
            word = word.replace("@", "named")
            Path(word).symlink_to(device)
        words.append(word)
    began = time.process_time()
    refused(call(*words))
    assert time.process_time() - began < 30  # most of it imports


def test_a_pipe_without_a_writer(here, call, monkeypatch):
    """A pipe to which nothing is written is waited for with a line, then given up."""
    clock = SimpleNamespace(monotonic=itertools.count(0, inputs.PATIENCE_SHOWN + 1).__next__)
    monkeypatch.setattr(inputs, "time", clock)
    os.mkfifo("pipe.swf")
    line = refused(call("stats", "pipe.swf"))
    assert "waiting for data from pipe.swf" in line
    assert "nothing was written to it" in line


def test_settings_through_a_pipe(here, call):
    """A pipe is an input like a file, also for settings."""
    os.mkfifo("pipe.toml")
    text = '[scenario]\nkind = "replay"\ntrace = "log.swf"\n'
    writer = Thread(target=lambda: Path("pipe.toml").write_text(text))
    writer.start()
    code, out, err = call("run", "pipe.toml", "--json")
    writer.join()
    assert (0, True) == (code, '"jobs_completed": 1' in out), err


def test_endless_standard_input(here):
    """A device as standard input is refused, too."""
    with Path("/dev/zero").open("rb") as zero:
        done = subprocess.run(
            [sys.executable, "-m", "hpcrowd", "convert", "-", "new.csv"],
            stdin=zero, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
    assert 2 == done.returncode
    assert "standard input cannot be read: is a device" in done.stderr


def test_settings_have_a_size(tmp_path):
    """A file of settings is read up to a limit only."""
    (tmp_path / "large").write_bytes(b"#" * 3000)
    with pytest.raises(OSError, match="the limit for such a file"):
        inputs.read_bytes(tmp_path / "large", 2000)


def test_unpacked_traces_fit_into_memory(here, call, monkeypatch):
    """A packed file that would fill the memory is refused while it is read."""
    monkeypatch.setattr(inputs, "free_memory", lambda: 0)
    monkeypatch.setattr(inputs, "SMALL", 10)
    assert "unpacked, more than fits" in refused(call("stats", "log.swf"))


def test_odd_traces(here):
    """They may begin with any number of empty lines; a number above 2^53 is called too large."""
    (here / "log.swf").write_text("\n" * 200_000 + LOG)
    assert 1 == len(read_trace("log.swf"))
    assert not inputs.is_input("x" * 5000)
    with pytest.raises(ParseError, match=r"9007199254744892.* too large"):
        parse_swf(LOG.replace(" 60 ", " 9007199254744892 "))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with code, a link out of it, a package whose import leaves a file, and cwd."""
    text = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nclass X: pass\n"
    for name in ("in/own.py", "out/own.py", "out/hpcrowd_test_stranger/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "out/hpcrowd_test_stranger/part.py").write_text(text)
    (tmp_path / "in/link.py").symlink_to(tmp_path / "out/own.py")
    monkeypatch.chdir(tmp_path / "out")
    return tmp_path


def ran(folder):
    """Return where code has run."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("ran"))


@pytest.mark.parametrize(
    ("module", "inside"),
    [
        ("{}/in/own.py", True),
        ("{}/in/../out/own.py", False),
        ("{}/in/link.py", False),
        ("own.py", False),
        ("hpcrowd_test_stranger.part", False),
        ("json", False),
        ("no_such_module.part", False),
    ],
)
def test_what_a_folder_brings_along(folder, module, inside):
    """Files in it, wherever links lead; finding that out loads nothing."""
    module = module.format(folder)
    assert inside == Trust(folders=(folder.resolve() / "in",)).allows(module)
    assert not Trust().allows(module)
    assert Trust(everything=True).allows(module)
    assert Trust(modules=(module.partition(".")[0],)).allows(module) or module.endswith(".py")
    assert [] == ran(folder)
    assert "hpcrowd_test_stranger" not in sys.modules


def test_modules_are_found_but_not_loaded(folder):
    """Packages neither; the source of what is not trusted is its file."""
    package = folder / "out" / "hpcrowd_test_stranger"
    assert package / "part.py" == file_of("hpcrowd_test_stranger.part")
    assert file_of("hpcrowd_test_stranger.part.more") is None
    with trusting(Trust()):
        assert package / "part.py" == source_of("hpcrowd_test_stranger.part:X")
        assert package / "__init__.py" == source_of("hpcrowd_test_stranger:X")
    assert [] == ran(folder)


def test_refused_left_alone_and_loaded(folder):
    """One line has the place, the rule, the file to read and the cure."""
    place = f"{folder}/in/own.py:X"
    assert trust() == Trust(everything=True)
    with trusting(Trust()):
        rule = "scheduler '.*own.py:X': .* from its folder; read .*own.py, and give --trust"
        with pytest.raises(QuantityError, match=rule):
            own("scheduler", place)
        with pytest.raises(QuantityError, match="--trust"):
            parse_scheduler(f"adaptive:overload-positive={place}")
        with ThreadPoolExecutor() as pool, pytest.raises(QuantityError, match="--trust"):
            pool.submit(own, "scheduler", place).result()
        with trusting(Trust(looking=True)), pytest.raises(NotLoaded):
            own("scheduler", place)
    assert [] == ran(folder)
    with trusting(Trust(folders=((folder / "in").resolve(),))):
        assert "X" == own("scheduler", place).__name__
    assert ["in/ran"] == ran(folder)
    assert trust() == Trust(everything=True)
