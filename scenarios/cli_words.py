"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, and nothing else.")
]

LogDecisions = Annotated[
    bool,
    typer.Option(
        "--log-decisions",
        help="Keep what each user decided and why, for `hpcrowd explain`; needs --out.",
    ),
]
