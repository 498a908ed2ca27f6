"""One module per level: pure numerics from two sides' evidence to a Finding. No I/O. Imports core and wire."""
