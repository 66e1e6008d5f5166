"""Every command that writes, with what it reads, and whether what it has written is complete."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
from hpcrowd.agents.learned.model import LearnedModel
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.output.guard import kind_of
from hpcrowd.environment.traces.formats.registry import read_trace

LOG = "; Version: 2.2\n; MaxProcs: 8\n" + "".join(
    f"{n} {n * 12_000} 0 {n * 37 % 600 + 10} {2 ** (n % 4)} -1 -1 {2 ** (n % 4)} 900 -1 1"
    f" {n % 5 + 1} 1 1 1 1 -1 -1\n"
    for n in range(1, 121)
)

#: Other files that commands read.
FILES = {
    "c.swf": LOG,
    "run.toml": '[scenario]\nkind = "replay"\ntrace = "c.swf"\n',
    "study.toml": '[scenario]\nkind = "replay"\ntrace = "c.swf"\n'
    '[axes]\nscheduler = ["easy", "fcfs"]\n',
    "people.toml": '[[users]]\nbehaviour = "linear"\n'
    'line = { slope = 0.5, intercept = 1000, cut = "9d" }\n[free]\n"users.0.line.slope" = "0..2"\n',
    "slurm.conf": "NodeName=n[1-4] CPUs=8 RealMemory=32000\nPartitionName=p Nodes=ALL\n",
    "grid.toml": 'users = "rigid"\n'
    '[clusters.north]\nprocessors = 8\ntrace = "c.swf"\ngrid_share = 0.4\n'
    '[clusters.south]\nprocessors = 8\ntrace = "c.swf"\n',
}

#: Every command that writes: it writes ``out``, with or without a suffix, in the current folder.
COMMANDS = {
    "fit": "fit lublin c.swf -o out.json --force",
    "learned": "fit learned:trees=2 c.swf -o out.parquet --force",
    "calibrate": "calibrate people.toml c.swf --draws 50 -o out.json --force",
    "generate": "generate lublin --processors 8 --jobs 200 -o out.swf --force",
    "judge": "judge lublin c.swf --seeds 2 --workers 1 -o out.html --force",
    "stats": "stats c.swf -o out.html --force",
    "convert": "convert c.swf out.csv --force",
    "clean": "clean c.swf --larger -o out.swf --force",
    "window": "window c.swf --from 0d --to 1d -o out.swf --force",
    "sessions": "sessions c.swf --user 1 --png out.png --force",
    "predict": "predict c.swf --model history --train --evaluations 3 --out out.json",
    "replay": "replay c.swf --out out",
    "what-if": "what-if c.swf processors=2x --out out",
    "gantt": "replay c.swf --gantt out.png",
    "drawing": "gantt c.swf -o out.png",
    "resample": "resample c.swf --days 14 --warm-up 7d --users rigid --out out",
    "populate": "populate lublin --days 1 --model-processors 64 --out out",
    "grid": "grid grid.toml --out out",
    "run": "run run.toml --out out",
    "validate": "validate c.swf --users rigid --out out",
    "report": "report c.swf -o out.html --figures out",
    "compare": "compare c.swf c.swf --out out",
    "machine": "machine slurm.conf --out out.toml --force",
    "demo": "demo --days 1 --out out",
    "reproduce": "reproduce minh2012-arrivals --jobs 1000 --seeds 2 --grid-seeds 2 --loads 0.7"
    " --grid-loads 0.5 --workers 1 --out out",
    "forecast": "forecast c.swf --days 1 --futures 5 --hindcasts 0 --out out",
    "snapshot": "forecast c.swf --at 10d --snapshot out.json --force",
    "sweep": "sweep study.toml --workers 1 --resume --out out",
}


def words_of(command: str) -> list[str]:
    """Return a command as the arguments of a process."""
    return [sys.executable, "-m", "hpcrowd", *COMMANDS[command].split()]


def run(command: str, folder: Path) -> None:
    """Run a command in a folder to its end; a study of few jobs does not reach its figures."""
    done = subprocess.run(
        words_of(command), cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == (command == "reproduce"), done.stderr


def whole(path: Path) -> bool:
    """Return whether a file or folder is complete."""
    if path.is_dir():
        if (path / "provenance.json").exists():
            return isinstance(json.loads((path / "provenance.json").read_text()), dict)
        return whole_part(path)
    if path.suffix in (".swf", ".csv"):
        return len(read_trace(path)) > 0
    text = path.read_bytes()
    if path.suffix == ".parquet":
        return kind_of(path) is not None and bool(LearnedModel.load(path).provenance)
    if path.suffix == ".toml":
        return kind_of(path) is not None and bool(read_machine([path]).partitions)
    ends = {".json": b"}\n", ".html": b"</html>\n", ".png": b"IEND\xaeB`\x82"}
    return kind_of(path) is not None and text.endswith(ends[path.suffix])


def whole_part(folder: Path) -> bool:
    """Return whether each file of unfinished work is complete, but for the end of an index."""
    for path in folder.glob("**/[!.]*"):
        match path.suffix:
            case ".json":
                json.loads(path.read_text())
            case ".parquet":
                pd.read_parquet(path)
            case ".csv":
                assert path.read_bytes().endswith(b"\n")
            case ".png":
                assert path.read_bytes().endswith(b"IEND\xaeB`\x82")
    return True
