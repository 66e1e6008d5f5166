"""Good files of every kind that hpcrowd reads, and the commands that read them.

``mutation_cases`` mutates them. They are so small that no command takes long.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.environment.traces.formats.format_cases import names_of_formats

#: A log of a day, with four users on 16 processors.
LOG = "\n".join(
    [
        "; Version: 2.2",
        "; MaxProcs: 16",
        "; UnixStartTime: 843480000",
        "; TimeZoneString: Europe/Stockholm",
        *(
            f"{n} {n * n * 900 % 40_000 + n * 3000} {n % 5 * 60} {n * 137 % 4000} {1 << n % 5} -1 "
            f"-1 {1 << n % 5} {n * 137 % 4000 * 2 + 60} -1 1 {n % 4 + 1} {n % 2 + 1} {n % 3 + 1} "
            "1 -1 -1 -1"
            for n in range(1, 25)
        ),
    ]
)

#: The same, over three weeks.
WEEKS = "\n".join(
    [
        "; MaxProcs: 8",
        *(
            f"{n} {n * 40_000} {n % 5 * 60} {n * 137 % 4000 + 1} {n % 4 + 1} -1 -1 -1 9000 -1 1 "
            f"{n % 3 + 1} 1 1 1 -1 -1 -1"
            for n in range(1, 46)
        ),
    ]
)

POPULATION = """
[[users]]
behaviour = "fluid"
share = 0.5
[[users]]
behaviour = "think-time"
share = 0.5
users = [2, 3]
hours = { opens = "8h", closes = "18h", days = ["Mon", "Tue", "Wed", "Thu", "Fri"] }
reactions = [
  { do = "switch", to = "backup", when = "recent-waits", wait = "1h" },
  { do = "delay", when = "signal", file = "signal.csv", above = 200.0 },
]
[clusters.backup]
processors = 8
speed = 2.0
scheduler = "fcfs"
estimates = "1.5x"
"""

SIGNAL = "time,value\n" + "".join(f"{hour * 3600},{hour * 37 % 400}\n" for hour in range(800))

PLATFORM = """
resubmit_after = "10m"
[[changes]]
do = "fail"
mean = "8h"
repair_mean = "2h"
jobs = "resubmit"
distribution = "weibull"
shape = 0.7
until = 100000
[[changes]]
do = "maintain"
start = "1996-09-23 20:00"
end = "1996-09-23 22:00"
announced = "1h"
[[changes]]
do = "down"
at = 20000
until = 30000
processors = 2
[[changes]]
do = "resize"
at = 40000
processors = 20
[[changes]]
do = "speed"
at = 50000
factor = 2.0
[[changes]]
do = "switch"
at = 60000
scheduler = "fcfs"
"""

GRID = """
broker = "first-fit"
users = "think-time"
components = 4
[clusters.north]
processors = 16
trace = "log.swf"
grid_share = 0.5
[clusters.south]
processors = 8
speed = 1.5
model = "lublin"
days = 0.2
load = 0.5
[grid]
model = "lublin"
days = 0.2
load = 0.4
"""

QUEUES = """
user-jobs = 4
user-processors = 12
[[queues]]
queues = [1, 2]
priority = 2.0
jobs = 3
[other]
processors = 8
"""

REPLAY = """
[scenario]
kind = "replay"
trace = "log.swf"
users = "think-time"
processors = "2x"
speed = "0.5x"
scheduler = "easy"
estimates = "1.5x"
requested = "at-least:2x"
sessions = "arrival:60m"
seed = 3
"""

RESAMPLE = """
[scenario]
kind = "resample"
trace = "weeks.swf"
users = "think-time"
days = 7
population = "1x"
satisfaction = "requested"
warm_up = 0
seed = 1
consequences = { leave = 0.1, away = 2 }
pool = { least = 1 }
"""

POPULATE = """
[scenario]
kind = "populate"
model = "mugm.json"
days = 1.0
load = 0.5
model_processors = 16
processors = "1x"
scheduler = "fcfs"
oblivious = false
"""

SWEEP = """
name = "study"
keep = "metrics"
[scenario]
kind = "replay"
trace = "log.swf"
users = "rigid"
[axes]
speed = ["1x", "0.5x"]
seed = 2
[trim]
warm_up = "1h"
cool_down = "1h"
[result]
metrics = ["utilization", "wait_mean_s"]
confidence = 0.9
"""

#: Good files, by name.
FILES = {
    "log.swf": LOG,
    "weeks.swf": WEEKS,
    "signal.csv": SIGNAL,
    "population.toml": POPULATION,
    "platform.toml": PLATFORM,
    "grid.toml": GRID,
    "queues.toml": QUEUES,
    "replay.toml": REPLAY,
    "resample.toml": RESAMPLE,
    "populate.toml": POPULATE,
    "sweep.toml": SWEEP,
}

#: Commands that make the other good files.
MAKERS = (
    "fit lublin log.swf -o lublin.json",
    "fit mugm log.swf -o mugm.json",
    "fit comprehensive log.swf -o comprehensive.json",
    "fit locality log.swf -o locality.json",
    "fit downey log.swf -o downey.json",
    "fit feitelson97 log.swf -o feitelson.json",
    "predict log.swf --model history --train --evaluations 2 --seeds 1 --split 0.5 "
    "--out trained.json",
    "replay log.swf --users population.toml --log-decisions --out run",
    "sweep sweep.toml --out swept --executor inline",
)


@dataclass(frozen=True)
class Corpus:
    """Good files of one kind.

    Attributes
    ----------
    files
        Their names.
    commands
        Commands that read one of them, ``@`` for its name; outputs begin with ``out``.
    """

    files: tuple[str, ...]
    commands: tuple[str, ...]


TRACE_COMMANDS = (
    "convert @ out.csv",
    "clean @ --json --larger --flurries 5/1h --first 1 --out out.swf",
    "sessions @ --json",
    "replay @ --json --users rigid",
    "replay @ --json --users fluid",
    "replay @ --users think-time --scheduler conservative --json",
    "replay @ --users generative --json --overrun kill",
    "replay @ --users think-time --requested tsafrir:18h --speed 2x --json",
    "predict @ --json",
    "window @ --from 1h --to 2d --out out.swf",
    "fit downey @ --out out.json",
    "stats @ --json",
)

CORPORA: dict[str, Corpus] = {
    **{f"trace-{name}": Corpus((f"trace.{name}",), TRACE_COMMANDS) for name in names_of_formats()},
    "trace-table": Corpus(("trace.table",), ("convert @ out.swf --map mapping.toml",)),
    "long-trace": Corpus(
        ("weeks.swf", "log.swf"),
        (
            "stats @ --json",
            "stats @ --out out.html",
            "resample @ --json --users think-time --warm-up 0s",
            "resample @ --json --users generative --warm-up 0s --days 7",
            "replay @ --out outdir --users fluid --gantt out.svg",
            "validate @ --users think-time --json",
            "fit mugm @ --out out.json",
            "fit lublin @ --out out.json --cycle weekly",
            "fit locality @ --out out.json",
            "report @ --out out.html",
            "compare @ --json",
        ),
    ),
    "mapping": Corpus(("mapping.toml",), ("convert trace.table out.swf --map @",)),
    "signal": Corpus(("signal.csv",), ("replay log.swf --users signalled.toml --json",)),
    "population": Corpus(("population.toml",), ("replay log.swf --users @ --json",)),
    "platform": Corpus(
        ("platform.toml",),
        (
            "replay log.swf --platform @ --users rigid --json",
            "replay log.swf --platform @ --users think-time --scheduler conservative --json",
        ),
    ),
    "grid": Corpus(("grid.toml",), ("grid @ --json",)),
    "queues": Corpus(
        ("queues.toml",),
        ("replay log.swf --scheduler multi-queue:file=@ --json",),
    ),
    "scenario": Corpus(
        ("replay.toml", "resample.toml", "populate.toml"), ("run @ --json", "run @ --json")
    ),
    "sweep": Corpus(
        ("sweep.toml",), ("sweep @ --show", "sweep @ --out outdir --executor inline --json")
    ),
    "model": Corpus(
        (
            "lublin.json",
            "mugm.json",
            "comprehensive.json",
            "locality.json",
            "downey.json",
            "feitelson.json",
        ),
        (
            "generate @ --jobs 50 --out out.swf",
            "generate @ --days 0.2 --load 0.5 --out out.swf --json",
            "populate @ --days 0.5 --json",
            "judge @ log.swf --seeds 1 --json",
        ),
    ),
    "trained": Corpus(
        ("trained.json",),
        ("replay log.swf --estimates @ --json", "predict log.swf --model @ --json"),
    ),
    "run": Corpus(
        (
            "run/summary.json",
            "run/provenance.json",
            "run/jobs.parquet",
            "run/decisions.parquet",
            "run/reactions.parquet",
        ),
        (
            "stats mutant --json",
            "explain mutant --user 1 --json",
            "compare mutant log.swf --json",
            "report mutant --out out.html",
            "convert mutant out.csv",
        ),
    ),
    "swept": Corpus(
        ("swept/study.json", "swept/index.jsonl"),
        (
            "sweep sweep.toml --out mutant --executor inline --resume",
            "sweep sweep.toml --out mutant --status",
        ),
    ),
    "numbers": Corpus((), ()),
}

#: Options of commands that take a number, for the corpus ``numbers``; ``@`` is the number.
NUMBERS = (
    "replay log.swf --json --processors @",
    "replay log.swf --json --processors @x",
    "replay log.swf --json --speed @x",
    "replay log.swf --json --seed @",
    "replay log.swf --json --estimates @x",
    "replay log.swf --json --requested at-least:@x",
    "replay log.swf --json --requested tsafrir:@h",
    "replay log.swf --json --sessions arrival:@m",
    "replay log.swf --json --scheduler selective:threshold=@",
    "replay log.swf --json --scheduler selective:bound=@",
    "replay log.swf --json --scheduler selective:categories=@",
    "replay log.swf --json --scheduler selective-categorized:categories=10/@",
    "replay log.swf --json --scheduler fair-share:half-life=@",
    "replay log.swf --json --scheduler fair-share:half-life=@d",
    "replay log.swf --json --scheduler fair-share:shares=1:@",
    "replay log.swf --json --scheduler fair-share:shares=@:2",
    "replay log.swf --json --scheduler multi-queue:user-jobs=@",
    "replay log.swf --json --scheduler multi-queue:queue-processors=@",
    "replay log.swf --json --scheduler multi-queue:priorities=1:@",
    "replay log.swf --json --scheduler multi-queue:priorities=@:1",
    "replay log.swf --json --scheduler creasy:alpha=@",
    "replay log.swf --json --scheduler creasy:limit=@",
    "replay log.swf --json --scheduler creasy:decline=@",
    "replay log.swf --json --scheduler adaptive:every=@",
    "replay log.swf --json --scheduler adaptive:every=@h",
    "replay log.swf --json --scheduler adaptive:overload=@",
    "replay log.swf --json --job-processors @x",
    "replay log.swf --users rigid --gantt out.svg --window @..1d",
    "resample weeks.swf --json --days @ --warm-up 0s",
    "resample weeks.swf --json --warm-up @",
    "resample weeks.swf --json --warm-up 0s --days 7 --population @x",
    "resample weeks.swf --json --warm-up 0s --days 7 --population @",
    "resample weeks.swf --json --warm-up 0s --days 7 --consequences leave=@",
    "resample weeks.swf --json --warm-up 0s --days 7 --pool least=@",
    "populate mugm.json --json --days @",
    "populate mugm.json --json --days 1 --load @",
    "populate mugm.json --json --days 1 --model-processors @",
    "populate mugm.json --json --days 1 --processors @",
    "generate lublin --processors 16 --out out.swf --jobs @",
    "generate lublin --processors @ --out out.swf --jobs 10",
    "generate lublin --processors 16 --out out.swf --days @",
    "generate lublin --processors 16 --out out.swf --jobs 10 --load @",
    "generate lublin --processors 16 --out out.swf --jobs 10 --correlation @",
    "generate feitelson96 --processors @ --out out.swf --jobs 10",
    "generate downey.json --processors @ --out out.swf --jobs 10",
    "generate comprehensive.json --out out.swf --days @",
    "generate lublin --processors 16 --out out.swf --jobs 10 --seed @",
    "demo --days @ --out outdir --seed -1",
    "judge lublin.json log.swf --json --seeds @ --workers 0",
    "judge lublin.json log.swf --json --seeds 1 --seed @",
    "validate log.swf --users think-time --json --seed @",
    "validate log.swf --users think-time --json --split @",
    "predict log.swf --json --split @",
    "predict log.swf --json --years @",
    "predict log.swf --json --model last-two --history last:@",
    "predict log.swf --json --model history --train --seeds 1 --budget @s",
    "predict log.swf --json --model history --train --seeds @ --budget 1s",
    "predict log.swf --json --model history --train --seeds 1 --evaluations @",
    "sweep sweep.toml --out outdir --executor dask --workers @",
    "clean log.swf --flurries @/1h --out out.swf",
    "clean log.swf --flurries 5/@h --out out.swf",
    "clean log.swf --first @ --out out.swf",
    "clean log.swf --last @ --out out.swf",
    "window log.swf --from @ --out out.swf",
    "window log.swf --to @d --out out.swf",
    "window log.swf --only-users @ --out out.swf",
    "window log.swf --only-users 1-@ --out out.swf",
    "stats log.swf --json --time-scale @",
    "stats log.swf --json --bag-gap @s",
    "stats log.swf --json --sessions arrival:@",
    "sessions log.swf --json --user @",
    "explain run --json --user @",
    "explain run --json --user 1 --from @",
    "convert log.swf out.csv --processors @",
    "fit mugm:groups=@ log.swf --out out.json",
    "fit comprehensive:groups=@ log.swf --out out.json",
    "inspect missing.swf --port @",
)
