"""What the tests of reports share: runs of every kind, and a reader of HTML pages."""

from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from hpcrowd import JobTable, Run, Trace, read_recorded, write_swf
from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.populations.openness import Happening, Visit
from hpcrowd.analysis.accounts.population import Population
from hpcrowd.scenarios.kinds.platform_files import PlatformConfig
from hpcrowd.scenarios.kinds.replay import replay
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

#: A trace that says when and where it was.
HEADER = "; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 4"

#: Elements that have no end.
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """An HTML page that is read: fails where elements are not closed in their order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.seen.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Make sure that it is the one that was opened last."""
        assert tag == self._open.pop()

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        if self._open[-1:] != ["style"]:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of every element of a kind."""
        return [attributes for name, attributes in self.seen if name == tag]

    def pictures(self) -> list[np.ndarray]:
        """Return the pixels of every picture."""
        start = "data:image/png;base64,"
        found = []
        for image in self.all("img"):
            assert image["src"].startswith(start)
            png = b64decode(image["src"].removeprefix(start), validate=True)
            found.append(np.asarray(Image.open(BytesIO(png)).convert("L"), float))
        return found


def busy_trace(make_trace: Callable[..., Trace], jobs: int = 90, header: str = HEADER) -> Trace:
    """Return two days of three users on a small machine."""
    return make_trace(
        *(
            {
                "submit": 1800 * n,
                "wait": 600 * (n % 4),
                "run": 7200,
                "requested_processors": 1 + n % 3,
                "requested_time": 7200 if n % 2 else 36000,
                "user": 10 + n % 3,
            }
            for n in range(jobs)
        ),
        header=header,
    )


def runs_of_every_kind(make_trace: Callable[..., Trace], folder: Path) -> dict[str, Run]:
    """Return a run of every kind that a report describes, by what is special with it."""
    trace = busy_trace(make_trace)
    trace.sha256 = "f" * 64
    write_swf(trace, folder / "log.swf")
    changes: list[dict[str, Any]] = [
        {"do": "maintain", "start": "2000-03-24 12:00", "end": "2000-03-24 18:00"},
        {"do": "resize", "at": 90000, "processors": 6},
        {"do": "switch", "at": 100000, "scheduler": "fcfs"},
    ]
    platform = PlatformConfig.model_validate({"name": "plan", "changes": changes})
    power = {
        "nodes": [{"name": "thin", "idle": "60 W", "processor": "40 W"}],
        "tariff": {"price": 0.2},
    }
    visits = replay(trace, users="rigid", power=power)
    rows = [
        Visit(0, 10, Happening.THERE),
        Visit(86400, 11, Happening.ARRIVED),
        Visit(90000, 10, Happening.GAVE_UP),
    ]
    visits.parts["population"] = Population(rows=rows)
    unrecorded = replay(trace, users="rigid")
    for column in ("recorded_submit", "recorded_start", "recorded_end"):
        getattr(unrecorded.jobs, column)[:] = -1
    unrecorded.reading.trace = unrecorded.work = None
    torn = busy_trace(make_trace)
    torn.columns["wait"][1:-1] = -1
    torn.columns["requested_processors"][-1] = -1
    torn.columns["allocated_processors"][-1] = -1
    write_swf(torn, folder / "torn.swf")
    return {
        "plain": replay(trace, users="think-time", log=DecisionLog()),
        "platform": replay(trace, users="rigid", platform=platform),
        "visits": visits,
        "record": read_recorded(folder / "log.swf"),
        "unrecorded": unrecorded,
        "one job": replay(busy_trace(make_trace, 1), users="rigid"),
        "no clock": replay(busy_trace(make_trace, header="; MaxProcs: 4"), users="fluid"),
        "repaired": read_recorded(folder / "torn.swf"),
        "empty": Run(JobTable(), 4, "nobody", {}),
    }


def texts(figure: Figure) -> str:
    """Everything that is written in a figure."""
    return " | ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))


def beyond_the_edges(figure: Figure) -> list[str]:
    """Return the texts of a figure that are cut off, by more than two pixels."""
    width, height = figure.canvas.get_width_height()
    cut = []
    for text in figure.findobj(Text):
        box = text.get_window_extent()
        inside = box.x0 > -2 and box.y0 > -2 and box.x1 < width + 2 and box.y1 < height + 2
        if text.get_text().strip() and text.get_visible() and not inside:
            cut.append(f"{text.get_text()} {box}")
    return cut
