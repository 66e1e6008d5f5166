"""Good files of every kind that hpcrowd reads, and the commands that read them.

``mutation_cases`` mutates them. They are so small that no command takes long.
"""

import re
from dataclasses import dataclass

from hpcrowd.environment.traces.formats.registry import FORMATS

#: A log of a day, with four users on 16 processors.
LOG = """; Version: 2.2
; MaxProcs: 16
; UnixStartTime: 843480000
; TimeZoneString: Europe/Stockholm
""" + "\n".join(
    f"{n} {n * n * 900 % 40_000 + n * 3000} {n % 5 * 60} {n * 137 % 4000} {1 << n % 5} -1 "
    f"-1 {1 << n % 5} {n * 137 % 4000 * 2 + 60} -1 1 {n % 4 + 1} {n % 2 + 1} {n % 3 + 1} 1 -1 -1 -1"
    for n in range(1, 25)
)

#: The same, over three weeks.
WEEKS = "; MaxProcs: 8\n" + "\n".join(
    f"{n} {n * 40_000} {n % 5 * 60} {n * 137 % 4000 + 1} {n % 4 + 1} -1 -1 -1 9000 -1 1 "
    f"{n % 3 + 1} 1 1 1 -1 -1 -1"
    for n in range(1, 46)
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
changes = [
  { do = "fail", mean = "8h", repair_mean = "2h", jobs = "resubmit", distribution = "weibull", \
    shape = 0.7, until = 100000 },
  { do = "maintain", start = "1996-09-23 20:00", end = "1996-09-23 22:00", announced = "1h" },
  { do = "down", at = 20000, until = 30000, processors = 2 },
  { do = "resize", at = 40000, processors = 20 },
  { do = "speed", at = 50000, factor = 2.0 },
  { do = "switch", at = 60000, scheduler = "fcfs" },
]
"""

POWER = """
pue = 1.2
[[nodes]]
idle = "100 W"
processor = "5 W"
processors = 8
on_time = "2m"
[tariff]
price = 0.3
periods = [{ opens = "8h", closes = "20h", price = 0.5, days = ["Mon"] }]
[sleep]
after = "10m"
[cap]
watts = "2 kW"
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
    "log.swf": LOG, "weeks.swf": WEEKS, "signal.csv": SIGNAL, "population.toml": POPULATION,
    "platform.toml": PLATFORM, "power.toml": POWER, "grid.toml": GRID,
    "queues.toml": QUEUES, "replay.toml": REPLAY, "resample.toml": RESAMPLE,
    "populate.toml": POPULATE, "sweep.toml": SWEEP,
}  # fmt: skip

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
    """Good files of one kind, and commands that read one of them: ``@`` is its name."""

    files: tuple[str, ...]
    commands: tuple[str, ...]


def corpora(table: str) -> dict[str, Corpus]:
    """Return the corpora of a table: a name and its files, and below it indented commands."""
    found = {}
    for part in re.split(r"\n(?=\S)", table.strip()):
        first, *commands = part.splitlines()
        name, *files = first.split()
        found[name] = Corpus(tuple(files), tuple(line.strip() for line in commands))
    return found


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

#: Outputs begin with ``out``.
TABLE = """
trace-table trace.table
    convert @ out.swf --map mapping.toml
long-trace weeks.swf log.swf
    stats @ --json
    stats @ --out out.html
    resample @ --json --users think-time --warm-up 0s
    resample @ --json --users generative --warm-up 0s --days 7
    replay @ --out outdir --users fluid --gantt out.svg
    validate @ --users think-time --json
    fit mugm @ --out out.json
    fit lublin @ --out out.json --cycle weekly
    fit locality @ --out out.json
    report @ --out out.html
    compare @ --json
mapping mapping.toml
    convert trace.table out.swf --map @
signal signal.csv
    replay log.swf --users signalled.toml --json
population population.toml
    replay log.swf --users @ --json
platform platform.toml
    replay log.swf --platform @ --users rigid --json
    replay log.swf --platform @ --users think-time --scheduler conservative --json
power power.toml
    replay log.swf --power @ --json
grid grid.toml
    grid @ --json
queues queues.toml
    replay log.swf --scheduler multi-queue:file=@ --json
scenario replay.toml resample.toml populate.toml
    run @ --json
sweep sweep.toml
    sweep @ --show
    sweep @ --out outdir --executor inline --json
model lublin.json mugm.json comprehensive.json locality.json downey.json feitelson.json
    generate @ --jobs 50 --out out.swf
    generate @ --days 0.2 --load 0.5 --out out.swf --json
    populate @ --days 0.5 --json
    judge @ log.swf --seeds 1 --json
trained trained.json
    replay log.swf --estimates @ --json
    predict log.swf --model @ --json
run run/summary.json run/provenance.json run/jobs.parquet \
    run/decisions.parquet run/reactions.parquet
    stats mutant --json
    explain mutant --user 1 --json
    compare mutant log.swf --json
    report mutant --out out.html
    convert mutant out.csv
swept swept/study.json swept/index.jsonl
    sweep sweep.toml --out mutant --executor inline --resume
    sweep sweep.toml --out mutant --status
numbers
"""

CORPORA: dict[str, Corpus] = {
    **{f"trace-{name}": Corpus((f"trace.{name}",), TRACE_COMMANDS) for name in FORMATS},
    **corpora(TABLE),
}

#: Commands, and their options that take a number, for the corpus ``numbers``; ``@`` is the number.
OPTIONS = """
replay log.swf --json
    --processors @ | --processors @x | --speed @x | --seed @ | --estimates @x
    --requested at-least:@x | --requested tsafrir:@h | --sessions arrival:@m | --job-processors @x
replay log.swf --json --scheduler
    selective:threshold=@ | selective:bound=@ | selective:categories=@
    selective-categorized:categories=10/@
    fair-share:half-life=@ | fair-share:half-life=@d | fair-share:shares=1:@
    fair-share:shares=@:2 | multi-queue:user-jobs=@ | multi-queue:queue-processors=@
    multi-queue:priorities=1:@ | multi-queue:priorities=@:1
    creasy:alpha=@ | creasy:limit=@ | creasy:decline=@
    adaptive:every=@ | adaptive:every=@h | adaptive:overload=@
replay log.swf --users rigid --gantt out.svg --window
    @..1d
resample weeks.swf --json
    --days @ --warm-up 0s | --warm-up @
resample weeks.swf --json --warm-up 0s --days 7
    --population @x | --population @ | --consequences leave=@ | --pool least=@
populate mugm.json --json
    --days @ | --days 1 --load @ | --days 1 --model-processors @ | --days 1 --processors @
generate lublin --out out.swf
    --processors 16 --jobs @ | --processors @ --jobs 10 | --processors 16 --days @
    --processors 16 --jobs 10 --load @ | --processors 16 --jobs 10 --correlation @
    --processors 16 --jobs 10 --seed @
generate
    feitelson96 --processors @ --out out.swf --jobs 10
    downey.json --processors @ --out out.swf --jobs 10
    comprehensive.json --out out.swf --days @
demo --out outdir --seed -1
    --days @
judge lublin.json log.swf --json
    --seeds @ --workers 0 | --seeds 1 --seed @
validate log.swf --users think-time --json
    --seed @ | --split @
predict log.swf --json
    --split @ | --years @ | --model last-two --history last:@
predict log.swf --json --model history --train
    --seeds 1 --budget @s | --seeds @ --budget 1s | --seeds 1 --evaluations @
sweep sweep.toml --out outdir --executor dask
    --workers @
clean log.swf --out out.swf
    --flurries @/1h | --flurries 5/@h | --first @ | --last @
window log.swf --out out.swf
    --from @ | --to @d | --only-users @ | --only-users 1-@
stats log.swf --json
    --time-scale @ | --bag-gap @s | --sessions arrival:@
sessions log.swf --json
    --user @
explain run --json
    --user @ | --user 1 --from @
convert log.swf out.csv
    --processors @
fit
    mugm:groups=@ log.swf --out out.json | comprehensive:groups=@ log.swf --out out.json
inspect missing.swf
    --port @
"""

NUMBERS = [
    f"{command} {option}"
    for command, *lines in (part.splitlines() for part in re.split(r"\n(?=\S)", OPTIONS.strip()))
    for line in lines
    for option in line.strip().split(" | ")
]
