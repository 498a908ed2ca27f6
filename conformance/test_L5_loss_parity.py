"""L5: the same training trajectory?"""

import pytest


@pytest.mark.L5(step0=1e-3, first3=2e-2, spike=1e-3, final=5e-2, mean=1e-2, tail=5e-3, drift=1e-2, spearman=0.9,
                order=0.9, departure=2.35)
def test_L5_loss_parity(baseline, candidate, series, judge):
    """Do both sides train along the same trajectory?"""
    judge(baseline.loss(series), candidate.loss(series))
