"""Closed-loop runner: workers, batched policy server. Imports core and wire. Empty so far."""
