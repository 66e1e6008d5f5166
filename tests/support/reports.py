"""What the tests of reports share: a busy log, a reader of HTML pages, and texts of figures."""

from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
from hpcrowd import Trace
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
    rows = [
        {"submit": 1800 * n, "wait": 600 * (n % 4), "run": 7200, "user": 10 + n % 3}
        | {"requested_processors": 1 + n % 3, "requested_time": 7200 if n % 2 else 36000}
        for n in range(jobs)
    ]
    return make_trace(*rows, header=header)


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
