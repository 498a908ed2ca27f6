"""L2: the same input tensors?"""

import pytest


@pytest.mark.L2(ids=0, noise=0, features=1e-5, pixels=2e-2)
def test_L2_input_parity(baseline, candidate, judge):
    """Do both models receive the same tensors?"""
    judge(baseline.inputs(), candidate.inputs())
