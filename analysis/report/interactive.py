"""Charts of an interactive report: to move, zoom and point at, in a page that loads nothing.

Five pictures of a report become charts (:data:`~hpcrowd.analysis.report.charts.CHARTS`); the others
stay images. The charts are drawn by BokehJS, which the page holds once. All charts are in one
document, so that those over time move together. The same runs give the same bytes: the names of
Bokeh's objects, which depend on what a process has drawn before, are numbered anew.

Bokeh is in the extra ``page``.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

import numpy as np

from hpcrowd.analysis.pictures.plots import run_name
from hpcrowd.analysis.report.charts import CHARTS, wall_of
from hpcrowd.analysis.report.figures import RUN_FIGURES, Images, Tell
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import UnavailableError, missing

#: How charts are moved, in words.
HOW = (
    "Charts are interactive. Point at one to see its numbers; drag to move it; hold Ctrl and turn "
    "the wheel, or choose the box above the chart, to zoom; the circular arrow shows all again. "
    "Charts over time move together."
)

#: Puts the colours of the page on all charts, and again when the reader's system changes them.
PAINT = """
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const css = getComputedStyle(document.documentElement);
    const get = (name) => css.getPropertyValue("--" + name).trim();
    const [ground, ink, quiet, line, rule] = ["ground", "ink", "quiet", "line", "rule"].map(get);
    for (const doc of Bokeh.documents) {
      for (const model of doc.all_models) {
        if (model.type === "Figure") {
          model.setv({background_fill_color: ground, border_fill_color: ground,
            outline_line_color: rule});
        } else if (/Axis$/.test(model.type)) {
          model.setv({axis_label_text_color: quiet, major_label_text_color: quiet,
            axis_line_color: rule, major_tick_line_color: rule, minor_tick_line_color: null});
        } else if (model.type === "Grid") {
          model.setv({grid_line_color: line});
        } else if (model.type === "Title") {
          model.setv({text_color: ink});
        } else if (model.type === "Legend") {
          model.setv({label_text_color: ink, background_fill_color: ground,
            background_fill_alpha: 0.8, border_line_color: null});
        } else if (model.tags.includes("ink")) {
          const glyph = model.glyph || model;
          glyph.setv({line_color: ink});
        }
      }
    }
  }
  Bokeh.set_log_level("error");
  Bokeh.embed.embed_items(DOCS, ITEMS).then(() => {
    paint();
    dark.addEventListener("change", paint);
    document.documentElement.dataset.charts = "drawn";
  });
})();
"""


class Charts(Images):
    """The pictures of a report, five of them as charts.

    Raises
    ------
    UnavailableError
        When Bokeh is not installed.
    """

    lead = (HOW,)

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        check_bokeh()
        from bokeh.document import Document
        from bokeh.models import Range1d

        self._document = Document()
        self._ids: list[tuple[str, str]] = []
        self._shared: Any = None
        self._range = Range1d

    def of(self, name: str, run: Run) -> list[str]:
        """Return a picture of :data:`~hpcrowd.analysis.report.figures.RUN_FIGURES` as HTML."""
        one = RUN_FIGURES[name]
        if name not in CHARTS or not one.shown(run):
            return super().of(name, run)
        self.tell(f"{run.label}: {one.title}")
        chart = CHARTS[name]
        panels = chart.draw(run, self.over_time)
        if not panels:
            return super().of(name, run)
        parts = []
        for panel in panels:
            place = f"chart-{len(self._ids) + 1}"
            self._document.add_root(panel.model)
            self._ids.append((place, panel.model.id))
            parts.append(
                f'<p class="chart-title">{escape(panel.title)}</p>'
                f'<div id="{place}" style="min-height: {panel.model.height}px"></div>'
            )
        title = escape(f"{one.title}, {run_name(run)}")
        return [
            f'<figure class="chart" role="group" aria-label="{title}">{"".join(parts)}'
            "<noscript><p>This chart needs scripts; a report without --interactive has pictures."
            f"</p></noscript><figcaption>{escape(chart.caption)}</figcaption></figure>"
        ]

    def over_time(self, run: Run, first: int, last: int) -> Any:
        """Return the time axis that all charts over time share; it covers all runs.

        Runs whose trace does not say when it began do not share one with the others.
        """
        begin, end = wall_of(run.clock, np.array([first, last])).tolist()
        if run.clock.nominal:
            return self._range(begin, end, bounds=None)
        if self._shared is None:
            self._shared = self._range(begin, end)
        self._shared.start = min(self._shared.start, begin)
        self._shared.end = max(self._shared.end, end)
        return self._shared

    def scripts(self) -> list[str]:
        """Return BokehJS and the charts."""
        if not self._ids:
            return []
        from bokeh.resources import Resources

        document = self._document.to_json(deferred=False)
        named, names = _renumbered(document)
        roots = {names[root]: place for place, root in self._ids}
        items = [{"docid": "report", "roots": roots, "root_ids": list(roots)}]
        docs = _safe(json.dumps({"report": named}, separators=(",", ":"), allow_nan=True))
        code = PAINT.replace("DOCS", docs).replace("ITEMS", _safe(json.dumps(items)))
        library, *_ = Resources(mode="inline", components=["bokeh"], minified=True).js_raw
        return [_safe(library), code]


def check_bokeh() -> None:
    """Check that charts can be drawn.

    Raises
    ------
    UnavailableError
        When Bokeh is not installed.
    """
    try:
        import bokeh.document  # noqa: F401
    except ImportError:
        raise UnavailableError(
            f"hpcrowd report --interactive: {missing('Bokeh', 'page')}"
        ) from None


def _safe(text: str) -> str:
    """Return a script that cannot end its element too early."""
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


def _renumbered(document: Any) -> tuple[Any, dict[str, str]]:
    """Return a document with its objects named by their order, and the new names by the old."""
    names: dict[str, str] = {}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("id"), str):
                names.setdefault(value["id"], f"m{len(names) + 1}")
            for one in value.values():
                collect(one)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(one) for key, one in value.items()} | (
                {"id": names[value["id"]]} if isinstance(value.get("id"), str) else {}
            )
        return [renamed(one) for one in value] if isinstance(value, list) else value

    collect(document)
    return renamed(document), names
