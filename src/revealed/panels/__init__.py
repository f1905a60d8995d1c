"""Frames and files of decisions → aligned arrays or counts.

`columns` says what the columns mean; `memory` reads a panel into arrays; `in_duckdb` and `in_engine` count it where it
is, into the `groups` that both hand over; `where` decides which.
"""
