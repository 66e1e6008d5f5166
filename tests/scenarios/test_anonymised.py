"""``--anonymise``: names of people, their groups, programs and jobs are in no output."""

import pytest

from tests.environment.state.test_slurm import COLUMNS, row

#: Names that no output has, in every column that may have one.
HEADER = "JobID|User|Account|JobName|Partition|QOS|Submit|Start|End|ElapsedRaw|State|AllocCPUS"
NAMES = ("USERX", "GROUPX", "PROGRAMX", "7777_")


def line(n):
    """A job of one of three users."""
    begin, end = f"2024-01-{n // 20 + 1:02}T{n % 20:02}:00:00", f"2024-01-{n // 20 + 1:02}T23:30:00"
    names = f"{NAMES[3]}{n}|{NAMES[0]}{n % 3}|{NAMES[1]}|{NAMES[2]}{n}|main|normal"
    return f"{names}|{begin}|{begin}|{end}|60|COMPLETED|2"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a log, a queue and a scenario, which are of the named."""
    (tmp_path / "log.txt").write_text("\n".join([HEADER, *map(line, range(40))]) + "\n")
    queued = row("77770", USER="USERX0", ACCOUNT="GROUPX", NAME="PROGRAMX")
    (tmp_path / "queue.txt").write_text(f"{COLUMNS}\n{queued}\n")
    (tmp_path / "run.toml").write_text(
        '[scenario]\nkind = "replay"\ntrace = "log.txt"\nanonymise = true\n'
    )
    (tmp_path / "site.toml").write_text('[[nodes]]\nname = "n[1-9]"\ncores = 64\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "replay log.txt --users rigid --out out --json --anonymise",
        "replay log.txt --out out --log-decisions --anonymise",
        "run run.toml --out out",
        "stats log.txt --json --anonymise",
        "sessions log.txt --json --anonymise",
        "sessions log.txt --anonymise",
        "window log.txt --from 1h --to 2d --out out.csv --anonymise",
        "clean log.txt --larger --out out.csv --anonymise --json",
        "compare log.txt log.txt --json --anonymise",
        "convert log.txt out.csv --anonymise",
        "forecast queue.txt --past log.txt --processors 64 --snapshot out.state --anonymise",
        "forecast log.txt --snapshot out.state --anonymise",
    ],
)
def test_no_output_has_names(here, call, command):
    """Neither what is printed nor any file; the jobs are all there."""
    code, out, err = call(*command.split())
    assert 0 == code, err
    written = [path for place in here.glob("out*") for path in (place, *place.rglob("*"))]
    content = [path.read_bytes().decode("latin-1") for path in written if path.is_file()]
    for text in (out, err, *content):
        assert not [name for name in NAMES if name in text], text[:2000]
