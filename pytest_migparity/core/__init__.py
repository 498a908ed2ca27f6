"""The nouns: verdicts, limits, evidence, manifest, answer. Imports nothing of ours."""
