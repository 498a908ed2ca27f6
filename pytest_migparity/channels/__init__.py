"""One module per channel, one verified store. Imports core and wire."""
