"""Random workloads for machines whose power is limited or saved, small and full of ties."""

import numpy as np
from hpcrowd import JobTable
from hypothesis import strategies as st

from tests.support.policies import Rows
from tests.support.simulations import recorded

#: (submission, run time, processors, requested time, user).
workloads = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.integers(0, 10),
        st.integers(1, 7),
        st.integers(0, 12),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=30,
)


def made(rows: Rows) -> JobTable:
    """The table of these jobs; their requested time is their run time, and user 1 has them."""
    filled = [(*row, *(row[1], 1)[len(row) - 3 :]) for row in rows]
    submit, run, processors, requested, user = np.array(filled).T
    return recorded(submit, run, processors=processors, requested_time=requested, user=user)
