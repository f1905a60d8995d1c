"""The rivals, side by side: what each side does, how they talk, how the two are compared. See ../bench_peers.py."""
