"""L3: where do the activations first part?"""

import pytest


@pytest.mark.L3(error=4, cosine=0.99, norm=5e-2)
def test_L3_forward_parity(baseline, candidate, judge):
    """At which module do the activations first part?"""
    judge(baseline.forward(), candidate.forward())
