"""Jobs for machines whose power is limited or saved."""

from hpcrowd import JobTable

from tests.support.policies import Rows, make


def made(rows: Rows) -> JobTable:
    """The table of these jobs; their requested time is their run time, and user 1 has them."""
    return make([(*row, *(row[1], 1, 1, 0)[len(row) - 3 :]) for row in rows])
