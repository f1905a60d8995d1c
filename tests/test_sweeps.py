"""Sweeps block by block are sweeps."""

import numpy as np
import pytest

import revealed as rv
from models import random_mdp, random_reward
from revealed import sweeps
from revealed.environments import grid_transitions
from revealed.sweeps import log_sum_exp, q_values, soft_maximum, sweep
from revealed.transitions import csr


@pytest.fixture(params=["plain", "masked", "ends"])
def mdp(request: pytest.FixtureRequest) -> rv.MDP:
    kinds = {"plain": {}, "masked": {"masked": True}, "ends": {"terminal": 3, "discount": 1.0, "masked": True}}
    return random_mdp(50, 3, **kinds[request.param])


@pytest.mark.parametrize("cores", [1, 2, 7])
def test_blocks_on_threads_give_the_same_to_the_last_digit(mdp, cores, monkeypatch):
    reward, V = random_reward(mdp), np.random.default_rng(0).normal(size=50)
    whole = sweep(mdp, reward, V, 3)
    for name, module, value in (("WORTH_BLOCKS", sweeps, 1), ("BLOCK", csr, 21), ("cores", sweeps, lambda: cores)):
        monkeypatch.setattr(module, name, value)
    assert len(mdp.transitions.row_blocks) == 8
    np.testing.assert_array_equal(sweep(mdp, reward, V, 3), whole)


def test_several_sweeps_are_one_after_the_other(mdp):
    reward, V = random_reward(mdp), np.zeros(50)
    twice = sweep(mdp, reward, sweep(mdp, reward, V))
    np.testing.assert_array_equal(sweep(mdp, reward, V, 2), twice)
    np.testing.assert_array_equal(sweep(mdp, reward, V), log_sum_exp(q_values(mdp, reward, V)))


def test_blocks_share_the_memory_of_the_whole():
    mdp = rv.MDP(grid_transitions(120, 120, 0.3))
    blocks = mdp.transitions.row_blocks
    assert len(blocks) > 1
    assert all(np.shares_memory(block.rows.data, mdp.transitions.matrix.data) for block in blocks)


def test_memory_that_is_lent_is_used_and_nothing_else_changes(mdp):
    Q = q_values(mdp, random_reward(mdp), np.zeros(50))
    expected, before = log_sum_exp(Q), Q.copy()
    np.testing.assert_array_equal(Q, before)
    np.testing.assert_array_equal(log_sum_exp(Q, spare=True), expected)
    np.testing.assert_array_equal(soft_maximum(before)[0], expected)
