"""The rivals' side of the talk: one JSON request per line on stdin, one JSON answer per line on what was stdout.

It runs under the rivals' interpreter and needs nothing but the standard library. What a rival prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Handler = Callable[[dict[str, Any]], dict[str, Any]]


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came out."""
    start = time.perf_counter()
    found = act()
    return time.perf_counter() - start, found


def serve(packages: list[str], load: Callable[[], dict[str, Handler]]) -> None:
    """Import the rival (`load`, timed), greet, then answer requests {"do": name, ...} until stdin ends."""
    talk = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    seconds, handlers = timed(load)
    print(json.dumps({"import": seconds, "versions": {name: version(name) for name in packages}}), file=talk)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop("do")](request)
        except Exception as problem:
            traceback.print_exc()
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), file=talk)
