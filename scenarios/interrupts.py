"""Ctrl-C, SIGTERM and SIGHUP: a command ends within a second, whatever it is doing.

Python handles a signal when the main thread next runs Python code: after a call into a library
that computes, reads or writes for seconds. A thread therefore watches the signals as
they come in. If the program has not ended soon after one, the thread ends it: it removes
unfinished files and worker processes, and leaves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn

#: Time from a signal until the program is ended from outside, s; it is used to clean up.
PATIENCE = 0.6

#: The same where the program is cleaning up already, s.
LONGER = 0.9

#: Exit codes by signal, as in shells.
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

#: Words for messages by exit code.
WORDS = {129: "hung up", 130: "interrupted", 143: "terminated"}


class Terminated(KeyboardInterrupt):
    """The program received SIGTERM or SIGHUP."""


class Watch:
    """The signals of this process, from :meth:`begin` to :meth:`end`."""

    def __init__(self) -> None:
        self.began = False
        #: Exit code of the signal that came, 0 if none did.
        self.code = 0
        self._pipe = (-1, -1)

    def begin(self) -> None:
        """Handle signals from now on; only in the main thread, and once."""
        if self.began or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, signal.SIG_IGN):
            return  # somebody else's
        self.began = True
        reading, writing = self._pipe = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in CODES:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._raise)  # not what is ignored, as in the background
        sys.unraisablehook = _raise_again
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()

    def end(self) -> None:
        """Take no notice of signals any more: the work is finished, and the process ends."""
        if self.began:
            for number in CODES:
                if signal.getsignal(number) == self._raise:
                    signal.signal(number, signal.SIG_IGN)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if _importing(frame):
            _again(number)  # extensions turn an interruption of their import into an ImportError
            return
        self.code = CODES[signal.Signals(number)]
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    def _watch(self, reading: int) -> None:
        """Wait for signals; end the program if it does not end by itself."""
        while numbers := os.read(reading, 64):
            came = [one for one in CODES if one in numbers]
            came = [one for one in came if signal.getsignal(one) == self._raise]
            if not came:
                continue  # ignored, or a server handles it now
            code = CODES[came[0]]
            time.sleep(PATIENCE)
            if self.code:
                time.sleep(LONGER - PATIENCE)
            leave(code, f"hpcrowd: {WORDS[code]}")


def _raise_again(about: Any) -> None:
    """Raise an interruption again that came where Python can only ignore it, as in a callback."""
    if issubclass(about.exc_type, KeyboardInterrupt):
        _again(signal.SIGTERM if issubclass(about.exc_type, Terminated) else signal.SIGINT)
    else:
        sys.__unraisablehook__(about)


def _again(number: int) -> None:
    """Send this process a signal again, when what is under way now may be over."""
    threading.Timer(0.01, os.kill, (os.getpid(), number)).start()


def _importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported where a signal came in."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def leave(code: int, line: str) -> NoReturn:
    """Print a line and end this process at once, with the processes and files that it began.

    Nothing else runs any more: neither threads that still compute, nor what libraries registered
    for the end of the program.
    """
    from hpcrowd.environment.output.whole import remove_temporary

    remove_temporary()
    if "multiprocessing" in sys.modules:
        import multiprocessing
        from multiprocessing import util

        for child in multiprocessing.active_children():
            child.kill()
        with contextlib.suppress(Exception):
            util._run_finalizers(0)  # type: ignore[attr-defined]  # semaphores have names
    with contextlib.suppress(OSError):
        back = "\x1b[?25h\r\x1b[K" if os.isatty(2) else ""  # the cursor that a bar hid
        os.write(2, f"{back}{line}\n".encode())
    os._exit(code)


#: The signals of this process.
watch = Watch()
