"""Pictures of runs, and the reports that hold them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.comparison.pictures import draw_runs as draw_runs
    from .analysis.comparison.pictures import queues as queues
    from .analysis.comparison.report import write_comparison as write_comparison
    from .analysis.pictures.gantt import busiest_day as busiest_day
    from .analysis.pictures.over_time import overview as overview
    from .analysis.pictures.over_time import submissions_over_time as submissions_over_time
    from .analysis.pictures.over_time import use_over_time as use_over_time
    from .analysis.pictures.over_time import week_of as week_of
    from .analysis.pictures.over_time import write_overview as write_overview
    from .analysis.pictures.small_gantt import small_gantt as small_gantt
    from .analysis.pictures.waits import users_waits as users_waits
    from .analysis.pictures.waits import wait_classes as wait_classes
    from .analysis.pictures.waits import waits_apart as waits_apart
    from .analysis.pictures.waits import waits_by_class as waits_by_class
    from .analysis.report.figures import RUN_FIGURES as RUN_FIGURES
    from .analysis.report.figures import comings_and_goings as comings_and_goings
    from .analysis.report.figures import think_against_response as think_against_response
    from .analysis.report.figures import write_figures as write_figures
    from .analysis.report.runs import report_html as report_html
    from .analysis.report.runs import write_report_figures as write_report_figures
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
