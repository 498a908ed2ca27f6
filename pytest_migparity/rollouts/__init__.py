"""Closed-loop runner: workers, batched policy server. Imports core and wire. The issue on L6 and L7 moves in."""
