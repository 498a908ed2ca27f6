"""L5: the same training trajectory?"""

import pytest


@pytest.mark.L5(step0=2e-5, first3=5e-4, final=5e-3, mean=1e-3, tail=1e-3, drift=1e-3, spearman=0.99, order=0.9)
def test_L5_loss_parity(baseline, candidate, series, judge):
    """Do both sides train along the same trajectory?"""
    judge(baseline.loss(series), candidate.loss(series))
