"""L7: the same success in the closed loop?"""

import pytest


@pytest.mark.L7(margin=0.10, alpha=0.05)
def test_L7_closed_loop(baseline, candidate, judge):
    """Is the task's success rate no worse, beyond a margin?"""
    judge(baseline.rollouts(), candidate.rollouts())
