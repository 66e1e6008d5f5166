"""The command ``hpcrowd``, also ``python -m hpcrowd``."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line."""
    # Imports make a million objects that stay. Looking through them for garbage takes a sixth of
    # the start, and half a second at the end.
    gc.set_threshold(200_000, 50, 50)
    try:
        from hpcrowd.scenarios.interrupts import WORDS, watch
    except KeyboardInterrupt:  # before anybody watches the signals
        print("hpcrowd: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)
    try:
        watch.begin()
        from hpcrowd.scenarios.cli import main as run

        run()
    except KeyboardInterrupt:  # while it still imports
        code = watch.code or 130
        print(f"hpcrowd: {WORDS[code]}; nothing was written", file=sys.stderr)
        sys.exit(code)
    finally:
        watch.end()
        gc.freeze()


if __name__ == "__main__":
    main()
