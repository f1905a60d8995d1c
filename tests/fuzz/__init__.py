"""Every public function of the library, called with hostile and plausible values: only a `RevealedError` comes out.

things.py has real small objects, doors.py finds what can be called on them, calls.py says how each is called validly,
pool.py has the values that take an argument's place, cases.py names and plays one such call, worker.py plays many in a
process that may die, watch.py watches it. `python -m fuzz --help` runs it by hand, `make fuzz` for an hour or more.
"""
