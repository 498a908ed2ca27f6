"""Other people's files become our tables: tolerant, and loud about every repair. Imports core and wire."""
