"""L1: the same weights and data?"""

import pytest


@pytest.mark.L1(differing=0, unmatched=0)
def test_L1_identity(baseline, candidate, judge):
    """Same weights and data, and were the intended ones really loaded?"""
    judge(baseline.weights(), candidate.weights())
