"""The command ``hpcrowd``, also ``python -m hpcrowd``.

The packages of the project have everyday names, which another distribution may use too. This
module checks, before anything else is imported, that those found are the project's own.
"""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec
from pathlib import Path

__version__ = "0.1.0"

#: The packages of the project, all beside this file.
PACKAGES = ("environment", "agents", "analysis", "scenarios")


def shadowed() -> str | None:
    """Return one line about a package that is hidden by another of its name, or None."""
    here = Path(__file__).resolve().parent
    for name in PACKAGES:
        spec = find_spec(name)
        places = (
            [] if spec is None else list(spec.submodule_search_locations or [spec.origin or ""])
        )
        found = Path(places[0]).resolve() if places and places[0] else None
        if found != here / name:
            return (
                f"package {name!r} comes from {found}, not from {here / name}: another "
                "distribution shadows it; install hpcrowd into an environment of its own"
            )
    return None


def main() -> None:
    """Run the command line."""
    # Imports make a million objects that stay. Looking through them for garbage takes a sixth of
    # the start, and half a second at the end.
    gc.set_threshold(200_000, 50, 50)
    problem = shadowed()
    if problem:
        sys.exit(f"hpcrowd: {problem}")
    try:
        from scenarios.cli import main as run

        run()
    except KeyboardInterrupt:  # while it still imports
        print("hpcrowd: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
