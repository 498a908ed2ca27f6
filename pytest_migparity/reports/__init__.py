"""Verdicts as people read them: messages (zh, en), tables, Markdown. Imports core and wire."""
