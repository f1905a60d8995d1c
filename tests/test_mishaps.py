"""What goes wrong around a command: places that cannot be written, disks that are full, memory, Ctrl-C, kills."""

import ctypes
import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import revealed as rv
import trips as files
from revealed.commands import terminal
from revealed.commands.placing import placed, target_file, write_frame
from revealed.errors import CannotWrite, InvalidInput
from revealed.files import hidden, prepare_folder, require_writable, sweep, write_atomically
from shell import here, one_line, quickly_in, stand_in, well

TRIPS = ("fit", "trips.csv", *files.FLAGS, "--features", "stations.csv", "--columns", "shops", "--discount", "0.9")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = files.write(tmp_path_factory.mktemp("data"))
    with quickly_in(folder):
        well(*TRIPS, "--out", "there")
    return folder


@pytest.fixture(autouse=True)
def inside(data, monkeypatch):
    stand_in(data, monkeypatch)


def python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A process in a group of its own, so that a signal to the group is one to it and its children."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes | options)


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# places that cannot be written

BAD = {
    "a long name": "x" * 300,
    "a long name in the end": "a/" + "é" * 200,
    "a path that is too long": "/".join(["d" * 200] * 25),
    "a file on the way": "trips.csv/out",
    "a file": "trips.csv",
    "NUL": "a\0b",
}
COMMANDS = {
    "fit": (TRIPS, ""),
    "compare": (("compare", *TRIPS[1:]), ""),
    "counterfactual": (("counterfactual", "there", "--discount", "0.8"), ""),
    "predict": (("predict", "there"), ".csv"),
    "simulate": (("simulate", "there"), ".parquet"),
}


@pytest.mark.parametrize("place", BAD)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_that_cannot_be_written_is_told_before_the_work(command, place, monkeypatch, data):
    def no_work(*_: Any, **__: Any) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("revealed.recipe.Recipe.fit", no_work)
    monkeypatch.setattr("revealed.recipe.Recipe.prepare", no_work)
    monkeypatch.setattr("revealed.commands.saved._open", no_work)
    before = sorted(os.listdir(data))
    words, suffix = COMMANDS[command]
    if place == "a file" and suffix:
        pytest.skip("a file is what is wanted")
    done = here(*words, "--out", BAD[place] + suffix)
    assert done.exit_code == 1
    line = one_line(done)
    assert "--out" in line
    assert len(line) < 6000
    assert sorted(os.listdir(data)) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_told(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "--out" in one_line(here(*TRIPS, "--out", tmp_path / "out"))


@pytest.mark.parametrize("length", [200, 230, 255])
def test_names_as_long_as_the_system_allows_are_written(length, tmp_path):
    """Also while they are written, beside their place."""
    well(*TRIPS, "--out", tmp_path / ("d" * length))
    well("predict", tmp_path / ("d" * length), "--out", tmp_path / ("p" * (length - 4) + ".csv"))
    well("simulate", tmp_path / ("d" * length), "--n", "2", "--out", tmp_path / ("s" * (length - 8) + ".parquet"))
    assert len(os.listdir(tmp_path)) == 3


def test_a_place_is_asked_without_making_it(tmp_path):
    require_writable(tmp_path / "a" / "b")
    assert os.listdir(tmp_path) == []
    for path in (tmp_path / ("x" * 300), tmp_path / "a\0b", tmp_path / ("d/" * 2000)):
        with pytest.raises(CannotWrite, match="`there`"):
            require_writable(path, "there")
    with pytest.raises(InvalidInput, match="NUL"):
        prepare_folder(tmp_path / "a\0b")


# a disk that is full


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "broken", ["pathlib.Path.write_bytes", "revealed.files.os.replace", "revealed.commands.placing.os.rename"]
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_blames_the_flag_and_leaves_nothing(command, broken, monkeypatch, tmp_path):
    words, suffix = COMMANDS[command]
    if suffix and "placing" in broken:
        pytest.skip("a single file is not renamed there")
    with monkeypatch.context() as patch:
        patch.setattr(broken, full)
        patch.setattr("revealed.commands.placing.os.replace", full)
        line = one_line(here(*words, "--out", tmp_path / f"out{suffix}"))
    assert "--out" in line
    assert "No space left on device" in line
    assert "PANEL" not in line
    assert os.listdir(tmp_path) == []


def test_a_limit_on_files_is_that_of_the_flag_that_names_them(data, tmp_path):
    """For real: the system refuses the bytes (ulimit -f)."""
    code = """
        import resource, sys
        from revealed.cli import app
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        app(sys.argv[1:])
    """
    for command, suffix in ((TRIPS, ""), (("simulate", "there", "--n", "200"), ".csv")):
        done = python(code, *command, "--out", tmp_path / f"out{suffix}")
        _, said = done.communicate(timeout=120)
        assert done.returncode == 1
        assert "`--out`" in said
        assert "File too large" in said
        assert "Traceback" not in said
        assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
@pytest.mark.parametrize("words", [("predict", "there"), ("simulate", "there"), ("fit", "--help")])
def test_standard_output_that_is_full_is_one_line(words):
    with open("/dev/full", "w") as target:
        done = python("import sys\nfrom revealed.cli import app\napp(sys.argv[1:])", *words, stdout=target)
        _, said = done.communicate(timeout=120)
    assert done.returncode == 1
    assert said.splitlines() == ["revealed: standard output: No space left on device."]


# memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libx.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes"),
    ],
)
def test_memory_that_runs_out_is_one_line(error, monkeypatch):
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("revealed.recipe.Recipe.fit", fails)
    done = here(*TRIPS)
    assert done.exit_code == 1
    assert one_line(done).startswith("revealed: memory ran out.")


def test_an_error_of_the_data_that_is_one_of_memory_blames_nobody_s_file(monkeypatch):
    def fails(*_: Any, **__: Any) -> None:
        try:
            raise RuntimeError("Failed to allocate block (bad allocation)")
        except RuntimeError as error:
            raise rv.errors.InvalidInput("path", "a file that can be read", "none") from error

    monkeypatch.setattr("revealed.recipe.Recipe.fit", fails)
    assert one_line(here(*TRIPS)).startswith("revealed: memory ran out.")


def test_a_bug_keeps_its_traceback(monkeypatch):
    def fails(*_: Any, **__: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("revealed.recipe.Recipe.fit", fails)
    with pytest.raises(KeyError):
        here(*TRIPS)


def test_a_limit_that_leaves_no_room_for_libraries_is_told_before_they_abort():
    code = "import sys\nfrom revealed.cli import app\napp(sys.argv[1:])"
    limit = terminal.LEAST_MEMORY // 5
    done = python(code, *TRIPS, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    _, said = done.communicate(timeout=120)
    assert done.returncode == 1
    needed = "the libraries need 1.5 GB of address space. Run `ulimit -v unlimited` first."
    assert said.splitlines() == [f"revealed: memory is limited to 0.3 GB, and {needed}"]


def test_a_network_needs_more_room_which_is_told_before_it_aborts():
    code = "import sys\nfrom revealed.cli import app\napp(sys.argv[1:])"
    limit = terminal.LEAST_MEMORY
    done = python(
        code,
        *(*TRIPS, "--reward", "neural"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    _, said = done.communicate(timeout=120)
    assert (done.returncode, said.splitlines()) == (
        1,
        [
            "revealed: memory is limited to 1.5 GB, and JAX needs 2.2 GB of address space. "
            "Run `ulimit -v unlimited` first."
        ],
    )


# Ctrl-C

WORK = """
    import sys, time
    from pathlib import Path
    from revealed.parallel import each

    def slow(folder, k):
        import os, signal
        deaf = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        (folder / f"{k}.started").write_text(f"{os.getpid()} {deaf}")
        time.sleep(0.05 if k < 2 else 60.0)
        return k

    folder, done = Path(sys.argv[1]), []
    try:
        for k in each(slow, [(folder, k) for k in range(6)], jobs=2):
            done.append(k)
            (folder / f"{k}.done").touch()
    except KeyboardInterrupt:
        print("stopped", sorted(done), flush=True)
        sys.exit(130)
"""


def is_running(process: int) -> bool:
    """Not one that has ended and that nobody has asked about."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    done = python(WORK, str(tmp_path))
    wait_for(lambda: len(list(tmp_path.glob("*.started"))) >= 4)
    workers = {int(file.read_text().split()[0]) for file in tmp_path.glob("*.started")}
    assert len(workers) == 2
    assert done.pid not in workers
    done.kill()
    done.wait()
    wait_for(lambda: not any(map(is_running, workers)), 30.0)


def test_a_worker_whose_maker_has_gone_before_it_begins_ends_at_once():
    """Killed while its workers start, a run would leave them waiting for pieces for ever."""
    code = "import os; from revealed.parallel import _follow; _follow({}); print('goes on'); os._exit(0)"
    for maker, said in (("os.getppid() + 10**6", ""), ("os.getppid()", "goes on")):
        begun = python(code.format(maker))
        assert begun.communicate(timeout=60)[0].strip() == said
        assert begun.returncode == (0 if said else 1)


@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), None])
def test_ctrl_c_while_a_file_is_read_is_ctrl_c(error):
    """DuckDB answers it with an error of its own."""
    duckdb = pytest.importorskip("duckdb")
    from revealed.written import interruptible

    with pytest.raises(KeyboardInterrupt), interruptible():
        raise error or duckdb.InterruptException("INTERRUPT Error: Interrupted!")
    with pytest.raises(RuntimeError, match="another"), interruptible():
        raise RuntimeError("another")


def test_every_question_to_duckdb_can_be_interrupted():
    """Whatever fetches rows does so within `interruptible`, or `told`, which is within it."""
    safe = ("interruptible()", ".told()")
    fetching = (".fetchall()", ".fetchnumpy()", ".write_parquet(", ".create(")
    source = Path(rv.__file__).parent
    for path in source.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for k, line in enumerate(lines):
            if any(word in line for word in fetching):
                near = "".join(lines[max(0, k - 4) : k + 1])
                assert any(word in near for word in safe), f"{path.name}:{k + 1}"


def test_a_program_without_standard_error_draws_no_bar(monkeypatch):
    """A daemon has none."""
    mdp = rv.MDP([[[0.5, 0.5]] * 2] * 2, 0.9)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    assert rv.solve(mdp, [[0.0, 1.0]] * 2).policy.shape == (2, 2)


def test_parquet_is_not_written_where_duckdb_would_find_no_room(monkeypatch):
    monkeypatch.setattr("revealed.gates.address_space", lambda: 1_800_000_000)
    with pytest.raises(InvalidInput, match=r"writing Parquet needs 2\.2 GB of address space") as caught:
        target_file("x.parquet")
    assert "Write a .csv file" in str(caught.value.remedy)
    assert target_file("x.csv").name == "x.csv"


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no such signals here")
def test_ctrl_c_is_for_this_process_and_not_for_its_workers(tmp_path):
    run = python(WORK, tmp_path)
    wait_for(lambda: len(list(tmp_path.glob("*.started"))) >= 4 and len(list(tmp_path.glob("*.done"))) == 2)
    os.killpg(run.pid, signal.SIGINT)
    out, said = run.communicate(timeout=60)
    assert (run.returncode, out.strip(), said) == (130, "stopped [0, 1]", "")
    told = [path.read_text().split() for path in tmp_path.glob("*.started")]
    assert {deaf for _, deaf in told} == {"True"}  # also while they started, when a traceback would have come
    wait_for(lambda: not any(alive(int(pid)) for pid, _ in told))


def test_ctrl_c_while_the_program_is_read_ends_it_as_ever(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    run = python("import sys\nsys.path.insert(0, sys.argv[1])\nfrom revealed.__main__ import run\nrun()", tmp_path)
    assert (run.communicate(timeout=60), run.returncode) == (("", "revealed: stopped.\n"), 130)


MOMENTS = {
    "threads are waited for": "threading._register_atexit(press)",
    "exit hooks run": "atexit.register(press)",
    "Python has gone": "libc = ctypes.CDLL(None); libc.on_exit(getattr(libc, 'raise'), None)",  # raise(2), the status
}


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "on_exit"), reason="no such hook here")
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_ctrl_c_once_everything_is_written_changes_nothing(moment):
    """It came through as a traceback from a hook of joblib's, or ended the process by the signal itself."""
    code = f"""
        import atexit, ctypes, os, signal, sys, threading
        import revealed.cli
        press = lambda: os.kill(os.getpid(), signal.SIGINT)
        {moment}
        revealed.cli.app = lambda **_: sys.exit({signal.SIGINT.value})
        from revealed.__main__ import run
        run()
    """
    run = python(code)
    assert (run.communicate(timeout=60), run.returncode) == (("", ""), signal.SIGINT)


def test_ctrl_c_within_an_exec_ends_with_the_same_status():
    """Python remembers it, and after "stopped." ended by the signal itself; data classes are made by an exec."""
    code = """
        import revealed.cli
        revealed.cli.app = lambda **_: exec("raise KeyboardInterrupt")
        from revealed.__main__ import run
        run()
    """
    run = python(code)
    assert (run.communicate(timeout=60), run.returncode) == (("", "revealed: stopped.\n"), 130)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# kills


def test_what_a_killed_run_left_beside_goes_with_the_next(tmp_path, data):
    code = """
        import os, signal, sys
        from pathlib import Path
        from revealed.commands.placing import placed
        with placed(Path(sys.argv[1]), ("a.csv",)) as beside:
            (beside / "a.csv").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    run = python(code, tmp_path / "out")
    assert run.wait(60) == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    others = [
        ".out.notes",
        f".out.{'0' * 32}",
        f".other.{left.split('.', 2)[2]}",
        left.replace(left.split(".")[3], "0" * 8),
    ]
    for name in others:
        (tmp_path / name).mkdir()
    mine = hidden(tmp_path / "out")
    mine.mkdir()
    well(*TRIPS, "--out", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, mine.name, "out"])  # ours that run, and other people's


def test_a_single_file_that_a_killed_run_left_goes_with_the_next(tmp_path):
    code = """
        import os, signal, sys
        from pathlib import Path
        from revealed import files
        files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        files.write_atomically(Path(sys.argv[1]), b"half")
    """
    assert python(code, tmp_path / "a.csv").wait(60) == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    write_atomically(tmp_path / "a.csv", b"whole")
    assert os.listdir(tmp_path) == ["a.csv"]
    sweep(tmp_path / "none" / "a.csv")  # nothing there, nothing to do


# what was there before


def test_results_that_are_replaced_are_told(tmp_path):
    said = "Results of an earlier run there were replaced."
    questions = ("counterfactual", "there", "--discount", "0.8", "--bands", "none")
    for k, words in enumerate((TRIPS, questions)):
        assert said not in well(*words, "--out", tmp_path / str(k))
        assert said in well(*words, "--out", tmp_path / str(k))
        assert '"replaced": true' in well(*words, "--json", "--out", tmp_path / str(k))


def test_a_failure_to_write_says_where_it_would_have_been(tmp_path, monkeypatch):
    def write() -> None:
        with placed(tmp_path / "out", ()) as beside:
            monkeypatch.setattr("pathlib.Path.write_bytes", full)
            write_frame(beside / "a.csv", pd.DataFrame({"a": [1]}))

    with pytest.raises(CannotWrite) as told:
        write()
    assert str(told.value.got) == f"{tmp_path / 'out' / 'a.csv'}: No space left on device"
