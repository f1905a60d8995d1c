"""`python -m fuzz`: cases for as many minutes as one likes, or one case again.

python -m fuzz --minutes 60 --seed 3
python -m fuzz --case 'fit:bootstrap(reps=int.1e30)'
python -m fuzz --every --door 'rv.MDP'
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from itertools import chain

from fuzz.cases import Case, every_case, play, some_cases, valid_cases
from fuzz.watch import FAILURES, Tally, played


def main() -> int:
    """In a folder of its own, which is thrown away: real objects have files, and hostile paths are written to."""
    options = _options()
    options.failures = os.path.abspath(options.failures)
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        os.chdir(folder)
        try:
            return _again(Case.parse(options.case)) if options.case else _run(options)
        finally:
            os.chdir(before)


def _run(options: argparse.Namespace) -> int:
    print(f"seed {options.seed}", flush=True)
    tally, end = Tally(), time.monotonic() + 60 * options.minutes
    with open(options.failures, "w", encoding="utf-8", errors="backslashreplace") as file:
        for outcome in played(_cases(options)):
            tally.add(outcome)
            if outcome.how in FAILURES:
                print(f"{outcome.case}\t{outcome.how}\t{outcome.said}\t{outcome.where}", file=file, flush=True)
            if tally.cases % 200 == 0:
                print(tally.words(), flush=True)
            if time.monotonic() > end:
                break
    _conclude(tally, options)
    return 1 if tally.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Hostile calls to every public function.")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31), help="which cases (a fresh one)")
    parser.add_argument("--case", help="play this one case here, with its traceback")
    parser.add_argument("--every", action="store_true", help="each argument of each function with each value, in turn")
    parser.add_argument("--bare", action="store_true", help="without playing the valid calls first")
    parser.add_argument("--door", default="", help="only functions whose name contains this")
    parser.add_argument("--failures", default="fuzz-failures.tsv", help="the file that failures go to")
    return parser.parse_args()


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    found = every_case() if options.every else some_cases(options.seed)
    first = [] if options.bare else valid_cases()
    return (case for case in chain(first, found) if options.door in case.door)


def _again(case: Case) -> int:
    outcome = play(case)
    print(outcome)
    if outcome.how in FAILURES:
        from fuzz.cases import arguments, door_named, perform, value_named

        try:
            door = door_named(case.door)
            perform(door, arguments(door) | {name: value_named(value) for name, value in case.values})
        except BaseException:
            traceback.print_exc()
    return int(outcome.how in FAILURES)


def _conclude(tally: Tally, options: argparse.Namespace) -> None:
    print(tally.words())
    for site, count in tally.sites.most_common():
        example = next(one for one in tally.failures if site.startswith(one.where or one.case.partition("(")[0]))
        print(f"{count:6d}  {site}  e.g. {example.case}: {example.said[:120]}")
    if tally.failures:
        print(f"seed {options.seed}; failures are in {options.failures}; each again with --case '...'")


if __name__ == "__main__":
    sys.exit(main())
