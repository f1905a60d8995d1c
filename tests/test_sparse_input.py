"""Sparse matrices that are not what they say: refused before compiled code follows an index, wherever they come in.

What could end the interpreter runs in another process.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.errors import InvalidInput, RevealedError
from revealed.sparse_input import as_dense, as_float_csr, as_float_entries

FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]
KINDS = ["array", "matrix"]
T = np.array([[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0.25, 0, 0, 0.75]] * 2)  # (S*A, S), four states


def made(table, fmt, kind):
    return getattr(sp, f"{fmt}_{kind}")(table)


def _with(matrix, **parts):
    for name, array in parts.items():
        setattr(matrix, name, array)
    return matrix


def broken():
    """Name → a matrix of shape (8, 4) whose inner arrays do not fit together."""
    out = {}

    def mutant(fmt, **parts):
        matrix = sp.csr_array(T).asformat(fmt)
        for name, change in parts.items():
            setattr(matrix, name, change(getattr(matrix, name)))
        return matrix

    def put(at, value):
        def change(array):
            array = array.copy()
            array[at] = value
            return array

        return change

    for fmt in ("csr", "csc"):
        out[f"{fmt}: index beyond the shape"] = mutant(fmt, indices=put(2, 99_999_999))
        out[f"{fmt}: negative index"] = mutant(fmt, indices=put(2, -7))
        out[f"{fmt}: indptr too short"] = mutant(fmt, indptr=lambda x: x[:-2].copy())
        out[f"{fmt}: indptr empty"] = mutant(fmt, indptr=lambda x: x[:0].copy())
        out[f"{fmt}: indptr falls"] = mutant(fmt, indptr=put(2, 10**6))
        out[f"{fmt}: indptr begins late"] = mutant(fmt, indptr=put(0, 1))
        out[f"{fmt}: indptr beyond what is stored"] = mutant(fmt, indptr=put(-1, 10**6))
        out[f"{fmt}: negative indptr"] = mutant(fmt, indptr=put(1, -3))
        out[f"{fmt}: fewer numbers than indices"] = mutant(fmt, data=lambda x: x[:3].copy())
        out[f"{fmt}: fewer indices than numbers"] = mutant(fmt, indices=lambda x: x[:3].copy())
        out[f"{fmt}: indices that are floats"] = mutant(fmt, indices=lambda x: x.astype(float))
        out[f"{fmt}: indptr of floats"] = mutant(fmt, indptr=lambda x: x.astype(float))
        out[f"{fmt}: indices with two axes"] = mutant(fmt, indices=lambda x: x.reshape(-1, 1))
        out[f"{fmt}: data None"] = mutant(fmt, data=lambda x: None)
        out[f"{fmt}: masked data"] = mutant(fmt, data=lambda x: np.ma.array(x, mask=x > 0.9))
    out["coo: row beyond the shape"] = mutant("coo", coords=lambda c: (c[0] + 10**6, c[1]))
    out["coo: negative column"] = mutant("coo", coords=lambda c: (c[0], c[1] - 9))
    out["coo: fewer rows than numbers"] = mutant("coo", coords=lambda c: (c[0][:3], c[1]))
    out["coo: rows of floats"] = mutant("coo", coords=lambda c: (c[0].astype(float), c[1]))
    out["coo: one axis"] = mutant("coo", coords=lambda c: c[:1])
    out["bsr: block beyond the shape"] = mutant("bsr", indices=put(1, 10**6))
    out["bsr: indptr too short"] = mutant("bsr", indptr=lambda x: x[:-1].copy())
    out["bsr: blocks that do not fit"] = mutant("bsr", data=lambda x: np.ones((len(x), 3, 3)))
    out["dia: offsets twice"] = mutant("dia", offsets=lambda x: np.zeros_like(x))
    out["dia: fewer offsets than rows"] = mutant("dia", offsets=lambda x: x[:1].copy())
    out["dia: offsets of floats"] = mutant("dia", offsets=lambda x: x.astype(float))
    lil: Any = sp.lil_array(T)
    lil.rows[2] = [4_000_000]
    out["lil: column beyond the shape"] = lil
    lil = sp.lil_array(T)
    lil.data[2] = [0.5, 0.5, 1.0, 3.0]
    out["lil: more numbers than columns"] = lil
    lil = sp.lil_array(T)
    lil.rows[1] = [-9]
    out["lil: negative column"] = lil
    lil = sp.lil_array(T)
    lil.rows = lil.rows[:3]
    out["lil: fewer rows"] = lil
    dok: Any = sp.dok_array(T)
    dok._dict[(700_000_000, 1)] = 1.0
    out["dok: row beyond the shape"] = dok
    dok = sp.dok_array(T)
    dok._dict[(0, -8)] = 1.0
    out["dok: negative column"] = dok
    return out


BROKEN = broken()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_matrix_is_refused(name):
    """By the gate itself, in this process: nothing compiled is reached."""
    with pytest.raises(InvalidInput, match="`m`: expected") as caught:
        as_float_csr("m", BROKEN[name])
    assert "coo_array" in str(caught.value)


SQUARE = {
    name: change(sp.csr_array(T[:4]))
    for name, change in {
        "index beyond the shape": lambda m: _with(m, indices=m.indices + 10**6),
        "indptr too short": lambda m: _with(m, indptr=m.indptr[:2].copy()),
    }.items()
}
WIDE = rv.MDP(np.full((8, 4, 8), 1 / 8))
EIGHT = rv.Demonstrations.from_counts(np.ones((8, 4)))
SMALL = rv.MDP(sp.csr_array(T))
DOORS = {
    "transitions": rv.MDP,
    "replace": lambda m: SMALL.replace(transitions=m),
    "feasible": lambda m: rv.MDP(np.full((8, 4, 8), 1 / 8), feasible=m),
    "features": rv.LinearReward,
    "features of pairs": lambda m: rv.LinearReward(m, n_actions=2),
    "features by action": lambda m: rv.LinearReward([sp.csr_array(T), m]),
    "network": rv.NeuralReward,
    "counts": rv.Demonstrations.from_counts,
    "policy": lambda m: rv.metrics.stochastic_evd(WIDE, np.zeros((8, 4)), m),
    "nll": lambda m: rv.metrics.nll(m, EIGHT),
    "reward": lambda m: rv.solve(WIDE, m),
    "reward of moves": lambda m: rv.metrics.epic(SMALL, m, np.ones((4, 2))),
    "coverage": lambda m: rv.metrics.epic(SMALL, np.ones((4, 2)), np.ones((4, 2)), m),
    "first step": lambda m: rv.CCP(rv.LinearReward(np.eye(8)), first_step=m).fit(WIDE, EIGHT),
    "simulate": lambda m: rv.simulate(WIDE, m, 2, 2, seed=0),
}


def try_every_door():
    """What no error of the library kept out, a line each."""
    odd = {f"{door} × {name}": (DOORS[door], m) for door in DOORS for name, m in BROKEN.items()}
    odd |= {f"by action × {name}": (lambda m: rv.MDP([sp.eye_array(4), m]), m) for name, m in SQUARE.items()}
    reward, four = rv.LinearReward(np.eye(4)), rv.Demonstrations.from_counts(np.ones((4, 2)))
    for name, m in SQUARE.items():
        step = rv.first_step.Kernel(distance=m)
        odd[f"distance × {name}"] = (lambda step: rv.CCP(reward, first_step=step).fit(SMALL, four), step)
    for name, (call, argument) in odd.items():
        try:
            call(argument)
        except RevealedError:
            continue
        except Exception as error:
            print(f"{name}: {type(error).__name__} {error}", flush=True)
        else:
            print(f"{name}: accepted", flush=True)


def test_no_door_lets_a_broken_matrix_in():
    """Every door × every defect, in one process that must survive."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_sparse_input as t; t.try_every_door()"
    command = [sys.executable, "-W", "ignore", "-c", code, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"ended by {done.returncode} after {done.stdout[-500:]} {done.stderr[-2000:]}"
    assert done.stdout == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format_means_the_same(fmt, kind):
    matrix = made(T, fmt, kind)
    before = matrix.copy()
    assert np.array_equal(as_float_csr("m", matrix).toarray(), T)
    assert np.array_equal(as_dense(matrix), T)
    assert np.array_equal(dense_of(rv.MDP(matrix)), T)
    squares = [made(T[0::2], fmt, kind), made(T[1::2], fmt, kind)]
    assert np.array_equal(dense_of(rv.MDP(squares)), T)
    assert np.array_equal(features_of(rv.LinearReward(matrix)), T)
    assert np.array_equal(features_of(rv.LinearReward(matrix, n_actions=2)), T)
    assert np.array_equal(features_of(rv.LinearReward(squares)), T)
    assert np.array_equal(rv.Demonstrations.from_counts(matrix).counts, T)
    feasible = rv.MDP(np.full((8, 4, 8), 1 / 8), feasible=made(T > 0, fmt, kind)).feasible
    assert np.array_equal(feasible, T > 0)
    assert (matrix != before).nnz == 0


def dense_of(mdp):
    return mdp.transitions.matrix.toarray()


def features_of(reward):
    return reward.matrix.toarray()


def test_duplicates_add_up_and_order_does_not_matter():
    """As SciPy means them, also where the matrix claims to be in order; the user's own stays as it is."""
    data, indices, indptr = np.array([0.5, 0.25, 0.25, 1.0]), np.array([1, 0, 1, 0]), np.array([0, 3, 4])
    matrix = sp.csr_array((data, indices, indptr), shape=(2, 2))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    rows = [[0.25, 0.75], [1.0, 0.0]]
    assert dense_of(rv.MDP(matrix)).tolist() == rows
    assert features_of(rv.LinearReward(matrix)).tolist() == rows
    assert rv.LinearReward(matrix).matrix.has_canonical_format
    assert rv.Demonstrations.from_counts(matrix).counts.tolist() == rows
    kept = (matrix.data.tolist(), matrix.indices.tolist(), matrix.indptr.tolist())
    assert kept == (data.tolist(), indices.tolist(), indptr.tolist())


def test_explicit_zeros_small_types_and_spare_room_are_fine():
    parts = np.array([1, 0, 1], dtype=np.int8), np.array([0, 1, 1]), np.array([0, 2, 3])
    matrix: Any = sp.csr_array(parts, shape=(2, 2))
    assert dense_of(rv.MDP(matrix)).tolist() == [[1, 0], [0, 1]]
    matrix.indices = matrix.indices.astype(np.int16)
    assert dense_of(rv.MDP(matrix)).tolist() == [[1, 0], [0, 1]]
    matrix.data = np.append(matrix.data, [9]).astype(np.int8)  # more room than rows point to
    matrix.indices = np.append(matrix.indices, [77])
    assert dense_of(rv.MDP(matrix)).tolist() == [[1, 0], [0, 1]]
    twice = sp.coo_array((np.array([100, 100], dtype=np.int8), ([0, 0], [1, 1])), shape=(1, 2))
    assert as_float_csr("m", twice).toarray().tolist() == [[0.0, 200.0]]  # no overflow in one byte
    true = sp.coo_array((np.array([True, True]), ([0, 0], [1, 1])), shape=(1, 2))
    assert as_float_csr("m", true).toarray().tolist() == [[0.0, 1.0]]  # true and true is true
    assert as_dense(true).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("dtype", [complex, object])
@pytest.mark.parametrize("fmt", ["csr", "coo", "lil", "dok"])
def test_what_are_no_real_numbers_is_refused(dtype, fmt):
    matrix = sp.csr_array(T.astype(complex)).asformat(fmt)
    if dtype is object and fmt in ("csr", "coo"):
        matrix.data = matrix.data.astype(object)
    with pytest.raises(RevealedError, match="real numbers"):
        rv.MDP(matrix)
    with pytest.raises(RevealedError, match="real numbers"):
        rv.LinearReward(matrix)


def test_arrays_of_three_axes_and_of_one():
    X = np.arange(24.0).reshape(2, 3, 4)
    reward = rv.LinearReward(sp.coo_array(X))
    assert np.array_equal(features_of(reward).reshape(2, 3, 4), X)
    bad = sp.coo_array(X)
    bad.coords = (bad.coords[0], bad.coords[1] + 3, bad.coords[2])
    with pytest.raises(RevealedError, match="indices in 0…2"):
        rv.LinearReward(bad)
    assert as_float_entries("x", sp.coo_array(np.array([0.0, 2.0]))).data.tolist() == [2.0]
    starts = rv.Demonstrations.from_counts(np.ones((2, 2)), starts=sp.coo_array(np.array([1.0, 2.0]))).starts
    assert starts.tolist() == [1.0, 2.0]


def test_diagonals_outside_the_shape_hold_nothing():
    rows, offsets = np.array([[1.0, 1.0], [5.0, 5.0], [7.0, 7.0]]), np.array([0, 9, -9])
    matrix = sp.dia_array((rows, offsets), shape=(2, 2))
    assert as_dense(matrix).tolist() == [[1, 0], [0, 1]]
