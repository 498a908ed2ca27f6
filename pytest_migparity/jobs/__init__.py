"""Orders: write, sign, verify, post, collect, ledger of days. Imports core, wire and channels. Empty so far."""
