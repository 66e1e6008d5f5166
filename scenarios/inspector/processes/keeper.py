"""The keeper: a process that holds what was read from files, and forks a process for each run.

It has one thread and nothing of the web, so that its forks are small and safe.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import HpcrowdError, UnavailableError
from hpcrowd.scenarios.inspector.panels.registry import PANELS, panels_json
from hpcrowd.scenarios.inspector.panels.timeline import timeline
from hpcrowd.scenarios.inspector.processes.wire import Wire
from hpcrowd.scenarios.inspector.processes.worker import started

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.subjects.course import Course
    from hpcrowd.scenarios.inspector.subjects.subject import Subject


def start_keeper(
    subjects: Sequence[Subject], path: str, listening: Sequence[socket.socket] = ()
) -> int:
    """Start the keeper; return the number of its process.

    Parameters
    ----------
    subjects
        What is inspected.
    path
        The socket on which the server listens already.
    listening
        Sockets of the server, which the keeper does not hold open.

    Raises
    ------
    UnavailableError
        When the system cannot fork processes, as Windows.
    """
    if not hasattr(os, "fork"):
        raise UnavailableError(
            "hpcrowd inspect: the page needs a system that forks processes, such as Linux, macOS, "
            "or Windows with WSL"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The other threads are those of linear algebra, which survive a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        code = 0
        # Ctrl-C reaches every process of the terminal; these end when the server closes their
        # connections. Other signals for all of them end these at once, and in silence.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        try:
            for one in listening:
                one.close()
            _keep(subjects, path)
        except BaseException:  # noqa: BLE001 - the process must not go on as another command
            traceback.print_exc()
            code = 1
        finally:
            os._exit(code)
    return process


def _keep(subjects: Sequence[Subject], path: str) -> None:
    # Ended forks need nobody to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)
    wire = Wire(path, {"keeper": True})
    for subject in subjects:
        with suppress(HpcrowdError):
            _warm_up(subject)
    gc.collect()
    gc.freeze()
    wire.send({"push": "warm"})
    while (message := wire.receive()) is not None:
        asked = message.header
        if os.fork() == 0:
            run = int(asked["run"])
            own = wire.again({"scout": True, "run": run})
            started(own, partial(_begun, subjects, asked), run)
            return


def _begun(subjects: Sequence[Subject], asked: dict[str, Any]) -> Course:
    return subjects[int(asked["subject"])].begin(asked["settings"])


def _warm_up(subject: Subject) -> None:
    """Simulate a day and look at it, so that modules are there for all forks."""
    course = subject.begin({})
    course.advance(course.now + DAY)
    timeline(course, whole=True)
    users = course.moment().jobs.user
    user = int(users[0]) if len(users) else None
    asked = {"panels": [*PANELS], "from": course.now - DAY, "to": course.now, "user": user}
    panels_json(course, asked)
