"""Orders: write, sign, verify, post, collect, ledger of days. Imports core, wire and channels. The door is in the wall; the issue on channels moves in."""
