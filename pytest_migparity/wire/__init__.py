"""Formats that cross machines. Stdlib only, Python 3.9 and newer."""
