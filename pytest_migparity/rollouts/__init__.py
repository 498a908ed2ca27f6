"""Closed-loop rollouts: workers that simulate, one policy that answers all of them in batches, a file of episodes.

Environments are gymnasium's (`reset(seed=)`, `step(action)`), policies an object with `act`; both come from a factory
of the user's. What an episode's policy starts from is keyed by (seed, query), so that two sides can be paired.
"""
