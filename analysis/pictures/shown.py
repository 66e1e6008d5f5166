"""A figure that notebooks show by itself, without ``%matplotlib inline``."""

from matplotlib.figure import Figure

from hpcrowd.analysis.pictures.plots import figure_png


class ShownFigure(Figure):
    """A figure of Matplotlib that knows its picture."""

    def _repr_png_(self) -> bytes:
        """Return it as a PNG file, for notebooks."""
        return figure_png(self)
