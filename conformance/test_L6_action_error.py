"""L6: the same output for the same input?"""

import pytest


@pytest.mark.L6(close=0.05, far=0.5, worst=0.5, flips=0.01, turn=0.2, reach=0.03, kl=0.01, neighbours=0.9)
def test_L6_action_error(baseline, candidate, task, judge):
    """Same input, same noise: same output, as far as the task can tell?"""
    judge(baseline.actions(task), candidate.actions(task))
