"""Our side of the talk: a rival's script under the rivals' interpreter, kept alive so that the two sides alternate."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / ".venv-peers" / "bin" / "python"

# One thread on both sides, whatever does the arithmetic.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


class RivalFailed(Exception):
    """A rival is missing, crashed, or answered with an error: its row says so, the others go on."""


class Rival:
    """A rival's process: `ask("fit", method="CCP")` sends a request and returns its answer."""

    def __init__(self, script: str | Path, python: str | Path = PYTHON, log: str | Path = os.devnull) -> None:
        self.name = Path(script).stem.removesuffix("_rival")
        if not Path(python).exists():
            raise RivalFailed(f"{self.name} is not installed (there is no {python}); `make bench-peers` installs it")
        self._log = Path(log)
        with self._log.open("w", encoding="utf-8") as noise:
            self._process = subprocess.Popen(
                [str(python), "-u", str(HERE / script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=noise,
                text=True,
                encoding="utf-8",
                env={**os.environ, **ONE_THREAD},
            )
        greeting = self._answer()
        self.import_seconds: float = greeting["import"]
        self.versions: dict[str, str] = greeting["versions"]

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RivalFailed(self._last_words()) from None
        answer = self._answer()
        if "error" in answer:
            raise RivalFailed(f"{self.name} failed: {answer['error']}")
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RivalFailed(self._last_words())
        return json.loads(line)

    def _last_words(self) -> str:
        code = self._process.wait()
        lines = self._log.read_text(encoding="utf-8").strip().splitlines() if self._log.is_file() else []
        return f"{self.name} stopped with code {code}" + (f": {lines[-1]}" if lines else "")

    def close(self) -> None:
        """End the process that was started here."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
