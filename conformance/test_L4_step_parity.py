"""L4: the same optimizer step?"""

import pytest


@pytest.mark.L4(loss=1e-3, grad=4, clip=1e-2, update=5e-2, moved=1e-2, skipped=0, state=0)
def test_L4_step_parity(baseline, candidate, judge):
    """Is one optimizer step the same: loss, gradients, updates?"""
    judge(baseline.step(), candidate.step())
