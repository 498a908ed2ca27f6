"""L0: the same software stack and effective configuration, apart from what was declared to differ?"""

import pytest


@pytest.mark.L0
def test_L0_envmatch(baseline, candidate, judge):
    """Do both sides run the same stack?"""
    judge(baseline.env(), candidate.env())
