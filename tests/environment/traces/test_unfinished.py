"""How long jobs run that had not ended when an accounting was written."""

import numpy as np
import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.unfinished import check_unfinished, lengths


def log(*jobs):
    """Fields of jobs given as user, run time and limit, s."""
    return dict(zip(("user", "run", "requested_time"), np.array(jobs).T, strict=True))


def test_typical_lengths():
    """As others that ran as long, for their part of the limit: the user's own if there are many."""
    own = [(1, 10 * place, 1000) for place in range(1, 22)]  # 1 to 21 % of the limit
    others = [(2, 900, 1000), (2, 2000, 1000)]
    going = [(1, -1, 500), (1, 45, 500), (1, 140, 1000), (3, 100, 1000), (1, 500, 500), (1, 9, -1)]
    fields = log(*own, *others, *going)
    mask = np.arange(len(fields["run"])) >= len(own) + len(others)
    # all of the user's; those from 9 % on; of all users where too few are left, here and after it
    assert [55, 75, 185, 165, 500, -1] == lengths(fields, mask, "typical").tolist()
    assert [500, 500, 1000, 1000, 500, -1] == lengths(fields, mask, "limit").tolist()
    assert [200, 200, 200, 200, 500, 200] == lengths(fields, mask, "200s").tolist()
    nobody = np.ones(1, bool)
    assert [70] == lengths(log((1, 3, 70)), nobody, "typical").tolist()
    with pytest.raises(QuantityError, match="or one of typical, limit, drop"):
        check_unfinished("soon")
