"""Mountain Car: the continuous car is Gymnasium's, the grid keeps its means, and kernels follow the paper's formula."""

import math
from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed.environments import mountain_car
from revealed.environments.kernel_transitions import BANDWIDTH, Places, kernel_transitions
from revealed.environments.mountain_car import GOAL, START, Drives, MountainCar, Nodes, step
from revealed.errors import InvalidInput


@pytest.fixture(scope="module")
def car() -> MountainCar:
    """The default one: 100 bins."""
    return mountain_car()


@pytest.fixture(scope="module")
def drives(car) -> Drives:
    return car.drive(300, seed=0)


def step_by_hand(x: float, v: float, action: int) -> tuple[float, float]:
    v = min(max(v + 0.001 * (action - 1) - 0.0025 * math.cos(3 * x), -0.07), 0.07)
    x = min(max(x + v, -1.2), 0.6)
    return x, 0.0 if x == -1.2 and v < 0 else v


# the continuous car


def test_the_car_is_that_of_gymnasium():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("MountainCar-v0").unwrapped
    rng = np.random.default_rng(0)
    walls = ends = 0
    for start in range(30):
        env.reset(seed=start)
        # swings of every size: the sign of the speed, at times a random push, so that wall and goal are both met
        x, v = (float(u) for u in env.state)
        for _ in range(200):
            action = int(rng.integers(3)) if rng.random() < 0.1 * (start % 3) else 2 if v >= 0 else 0
            x, v = (float(u) for u in step(x, v, action))
            ended = env.step(action)[2]
            assert abs(x - env.state[0]) <= 1e-12
            assert abs(v - env.state[1]) <= 1e-12
            assert ended == (x >= GOAL)
            walls += x == -1.2
            if ended:
                ends += 1
                break
    assert ends > 10
    assert walls > 0


def test_one_step_of_many_cars_is_one_step_of_each():
    rng = np.random.default_rng(1)
    x, v, a = rng.uniform(-1.2, 0.6, 500), rng.uniform(-0.07, 0.07, 500), rng.integers(3, size=500)
    x[:50], v[:50] = -1.19, -0.06  # into the wall
    after = np.column_stack(step(x, v, a))
    by_hand = [step_by_hand(*one) for one in zip(x.tolist(), v.tolist(), a.tolist(), strict=True)]
    np.testing.assert_allclose(after, by_hand, atol=1e-15)
    assert (after[:50] == [-1.2, 0.0]).all()  # all speed is lost


# the grid


@pytest.mark.parametrize("bins", [4, 7, 30])
def test_where_each_node_leads_is_spread_over_the_nodes_around_and_keeps_its_mean(bins):
    car = mountain_car(bins=bins)
    x, v = car.nodes.all
    T = car.mdp.transitions.matrix.toarray()
    width = (1.8 / (bins - 1), 0.14 / (bins - 1))
    before = 0
    for s in range(bins**2):
        if x[s] >= GOAL:
            assert car.mdp.terminal[s]
            continue
        for a in range(3):
            row, there = T[s * 3 + a], step_by_hand(x[s], v[s], a)
            led = np.flatnonzero(row)
            assert len(led) <= 4
            if there[0] >= GOAL:
                assert (x[led] >= GOAL).all()  # the drive has ended
            else:
                before += 1
                assert abs(row @ x - there[0]) <= 1e-12
                assert abs(row @ v - there[1]) <= 1e-12
                assert (np.abs(x[led] - there[0]) <= width[0] + 1e-12).all()
                assert (np.abs(v[led] - there[1]) <= width[1] + 1e-12).all()
    assert before > 2 * bins**2


def test_means_are_kept_on_the_grid_of_the_default_too(car):
    x, v = (np.repeat(u, 3) for u in car.nodes.all)
    there = step(x, v, np.tile([0, 1, 2], 10_000))
    T, before = car.mdp.transitions.matrix, (x < GOAL) & (there[0] < GOAL)
    for coordinate, expected in zip(car.nodes.all, there, strict=True):
        assert np.abs(T @ coordinate - expected)[before].max() <= 1e-12
    assert np.abs(np.asarray(T.sum(axis=1)).reshape(-1)[x < GOAL] - 1.0).max() <= 1e-12


@pytest.mark.parametrize("bins", [5, 30])
def test_the_truth_is_minus_ten_times_the_distance_to_the_far_end_of_the_goal(bins):
    car = mountain_car(bins=bins)
    for s in range(bins**2):
        x = -1.2 + 1.8 * (s // bins) / (bins - 1)
        expected = 0.0 if x >= 0.5 else -10.0 * abs(0.6 - x)
        assert car.true_reward[s].tolist() == pytest.approx([expected] * 3, rel=1e-12)
    np.testing.assert_array_equal(car.features.toarray(), np.eye(bins**2))
    nearer = mountain_car(bins=bins, scale=2.0, target=0.5)
    assert nearer.true_reward[0, 0] == pytest.approx(-2.0 * 1.7)


@pytest.mark.parametrize("bins", [4, 12, 100])
def test_the_start_is_uniform_at_rest_and_keeps_its_mean(bins):
    """Against many starts, each spread over the nodes around it."""
    nodes = Nodes(bins)
    x, v = nodes.all
    p = mountain_car(bins=bins).mdp.start() if bins < 100 else mountain_car(bins=100, discount=0.5).mdp.start()
    assert p @ x == pytest.approx(-0.5, abs=1e-12)
    assert p @ v == pytest.approx(0.0, abs=1e-12)
    n, expected = 20_000, np.zeros(bins**2)
    middle = START[0] + (np.arange(n) + 0.5) / n * (START[1] - START[0])
    for columns, weights in zip(*nodes.spread(middle, np.zeros(n)), strict=True):
        expected[columns] += weights / n
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_a_place_is_told_by_its_nearest_node_on_the_right_side_of_the_goal():
    nodes, rng = Nodes(9), np.random.default_rng(0)
    x, v = rng.uniform(-1.2, 0.6, 400), rng.uniform(-0.07, 0.07, 400)
    x[:40] = rng.uniform(0.45, 0.55, 40)
    told = nodes.nearest(x, v)
    for one, where in enumerate(told):
        right = [i for i in range(9) if (nodes.positions[i] >= GOAL) == (x[one] >= GOAL)]
        i = min(right, key=lambda i: abs(nodes.positions[i] - x[one]))
        j = min(range(9), key=lambda j: abs(nodes.velocities[j] - v[one]))
        assert where == i * 9 + j


# the expert and its drives


def test_four_of_five_experts_arrive_within_200_steps(car):
    """At the defaults all of 500 do (measured), in 107 steps on average and 121 at most."""
    found = car.drive(500, length=200, seed=1)
    assert found.reached.mean() >= 0.8
    assert found.lengths.max() <= 200
    assert "at the goal" in repr(found)


def test_with_a_reward_of_scale_one_no_expert_arrives():
    assert not mountain_car(scale=1.0).drive(300, seed=1).reached.any()


def test_measured_to_the_line_itself_the_last_steps_are_free_and_experts_hover_there():
    """Distances to x = 0.5: at the same scale nobody arrives, but most end within 0.04 of the line."""
    found = mountain_car(target=0.5).drive(300, seed=1)
    assert not found.reached.any()
    assert np.median(found.position[:, -1]) > 0.46


def test_drives_follow_the_dynamics_from_a_start_at_rest_to_the_goal(car, drives):
    for x, v, action, k in zip(drives.position, drives.velocity, drives.action, drives.lengths, strict=True):
        assert START[0] <= x[0] <= START[1]
        assert v[0] == 0.0
        for t in range(k):
            assert (x[t + 1], v[t + 1]) == pytest.approx(step_by_hand(x[t], v[t], int(action[t])), abs=1e-12)
            assert x[t] < GOAL
        assert (x[k] >= GOAL) or k == 200
        assert np.isnan(x[k + 1 :]).all()
        assert np.isnan(v[k + 1 :]).all()
        assert (action[k:] == -1).all()


def test_starts_are_uniform(car):
    x = car.drive(4000, length=1, seed=3).position[:, 0]
    assert x.mean() == pytest.approx(-0.5, abs=4 * 0.2 / np.sqrt(12 * 4000))
    assert x.std() == pytest.approx(0.2 / np.sqrt(12), rel=0.04)


def test_actions_are_drawn_from_the_expert_at_the_nearest_node(car, drives):
    """The log likelihood of the drawn actions is what the policy itself expects of it."""
    demos = car.discretise(drives)
    n, p = demos.counts.sum(axis=1), car.expert
    log_p = np.log(np.where(p > 0, p, 1.0))
    expected = np.sum(n * np.sum(p * log_p, axis=1))
    spread = np.sqrt(np.sum(n * (np.sum(p * log_p**2, axis=1) - np.sum(p * log_p, axis=1) ** 2)))
    assert abs(np.sum(demos.counts * log_p) - expected) < 4.0 * spread


def test_demonstrations_are_drives_told_in_states(car):
    demos, drives = car.demonstrate(20, seed=5), car.drive(20, seed=5)
    states = [
        int(car.nodes.nearest(drives.position[i, t], drives.velocity[i, t]))
        for i in range(20)
        for t in range(drives.lengths[i])
    ]
    assert demos.steps is not None
    assert demos.steps.state.tolist() == states
    assert demos.steps.action.tolist() == drives.action[drives.action >= 0].tolist()
    last = np.append(demos.steps.agent[1:] != demos.steps.agent[:-1], True)
    np.testing.assert_array_equal(car.mdp.terminal[demos.steps.next_state[last]], drives.reached)


def test_some_of_the_drives_can_be_picked(drives):
    few = drives[10:13]
    assert len(few) == 3
    np.testing.assert_array_equal(few.lengths, drives.lengths[10:13])
    np.testing.assert_array_equal(few.reached, drives.reached[10:13])


# kernel transitions


def by_the_formula(origin: Places, outcome: Places, action, bins, ended, n_actions, bandwidth):
    """T(s'|s, a) = Σ_i 1(a_i = a) φ_i(s) ψ_i(s') / Σ_i 1(a_i = a) φ_i(s), with loops and dense arrays."""
    wide, narrow = bandwidth

    def bell(distance: float, h: float) -> float:
        return math.exp(-0.5 * (distance / h) ** 2) if abs(distance) <= 2.0 * h else 0.0

    n, first = len(action), int(np.argmax(ended))
    psi = np.zeros((n, bins, bins))
    for k in range(n):
        middle = max(outcome.x[k], first) if outcome.ended[k] else min(outcome.x[k], first - 1)
        for i in range(bins):
            for j in range(bins):
                if bool(ended[i]) == bool(outcome.ended[k]):
                    psi[k, i, j] = bell(i - middle, narrow) * bell(j - outcome.y[k], narrow)
        psi[k] /= psi[k].sum()
    T, without = np.zeros((bins, bins, n_actions, bins, bins)), 0
    for i in range(bins):
        for j in range(bins):
            for a in range(n_actions):
                own = [k for k in range(n) if action[k] == a]
                weight = [bell(i - origin.x[k], wide) * bell(j - origin.y[k], wide) for k in own]
                if sum(weight) > 0.0:
                    T[i, j, a] = sum(w * psi[k] for w, k in zip(weight, own, strict=True)) / sum(weight)
                elif not ended[i]:
                    without += 1
                    T[i, j, a] = psi[min(own, key=lambda k: math.hypot(i - origin.x[k], j - origin.y[k]))]
    return T.reshape(bins * bins * n_actions, bins * bins), without


def random_steps(n: int, bins: int, first: int, n_actions: int, seed: int):
    rng = np.random.default_rng(seed)
    y = rng.uniform(0, bins - 1, (2, n))
    origin = Places(rng.uniform(0, first - 0.01, n), y[0], np.zeros(n, dtype=bool))
    x = rng.uniform(0, bins - 1, n)
    # the goal's line lies between the nodes first − 1 and first, so either side of it may be nearer to the other's node
    return (
        origin,
        Places(x, y[1], x >= first - 0.4),
        np.append(np.arange(n_actions), rng.integers(n_actions, size=n))[:n],
    )


@pytest.mark.parametrize("bandwidth", [BANDWIDTH, (0.25, 0.25), (0.7, 1.3), (2.5, 0.6)])
@pytest.mark.parametrize(("n", "seed"), [(3, 0), (12, 1), (60, 2)])
def test_kernel_transitions_are_the_paper_s_formula(n, seed, bandwidth):
    bins, first, n_actions = 7, 5, 3
    ended = np.arange(bins) >= first
    origin, outcome, action = random_steps(n, bins, first, n_actions, seed)
    T, without = kernel_transitions(origin, outcome, action, bins, ended, n_actions, bandwidth)
    expected, lost = by_the_formula(origin, outcome, action, bins, ended, n_actions, bandwidth)
    going = np.repeat(~ended, bins * n_actions)
    np.testing.assert_allclose(T.toarray()[going], expected[going], atol=1e-12)
    np.testing.assert_allclose(T.sum(axis=1)[going], 1.0, atol=1e-12)
    assert without == lost
    assert (lost > 0) == (n == 3 or bandwidth[0] < 1.0 or (n, bandwidth[0]) == (12, 1.0))  # both cases are met


def test_many_steps_are_smoothed_some_at_a_time_with_the_same_result(monkeypatch):
    origin, outcome, action = random_steps(60, 7, 5, 3, 2)
    given = (origin, outcome, action, 7, np.arange(7) >= 5, 3)
    at_once, lost = kernel_transitions(*given)
    monkeypatch.setattr("revealed.environments.kernel_transitions.MOST_STORED", 200)  # eight steps
    in_parts, also_lost = kernel_transitions(*given)
    assert abs(at_once - in_parts).max() <= 1e-14
    assert lost == also_lost


def test_an_expert_who_is_changed_on_a_kernel_model_still_knows_the_exact_one():
    car = mountain_car(bins=10)
    kernel = car.with_kernel_transitions(car.drive(50, seed=0))
    np.testing.assert_array_equal(kernel.with_expert("optimal").expert, car.with_expert("optimal").expert)


def test_kernels_need_continuous_drives():
    car = mountain_car(bins=8)
    with pytest.raises(InvalidInput, match="drives"):
        car.with_kernel_transitions(car.demonstrate(5, seed=0))  # pyright: ignore[reportArgumentType]


def test_a_pair_without_data_nearby_takes_the_nearest_step_of_its_action():
    """One step per action, in opposite corners: every pair takes its own action's, near or far."""
    bins, ended = 9, np.arange(9) >= 7
    still = np.zeros(2, dtype=bool)
    origin = Places(np.array([0.0, 6.0]), np.array([0.0, 8.0]), still)
    outcome = Places(np.array([1.0, 5.0]), np.array([2.0, 6.0]), still)
    T, without = kernel_transitions(origin, outcome, np.array([0, 1]), bins, ended, 2, (1.0, 0.25))
    for s in range(7 * bins):
        for a, led in enumerate((1 * bins + 2, 5 * bins + 6)):
            assert T[[s * 2 + a], :].toarray().argmax() == led
            assert T[[s * 2 + a], :].sum() == pytest.approx(1.0)
    assert without == 2 * 7 * 9 - 2 * 9  # each step supports the 3 × 3 nodes within two bandwidths in its corner


def test_a_step_that_ended_leads_to_the_goal_and_one_that_went_on_does_not():
    bins, ended = 10, np.arange(10) >= 8
    # outcomes on both sides of the line, each nearer to the other side's node
    origin = Places(np.array([7.0, 7.0]), np.array([5.0, 5.0]), np.zeros(2, dtype=bool))
    outcome = Places(np.array([7.4, 7.6]), np.array([5.0, 5.0]), np.array([True, False]))
    T, _ = kernel_transitions(origin, outcome, np.array([0, 1]), bins, ended, 2, (1.0, 1.0))
    at_goal = T[:, np.repeat(ended, bins)].sum(axis=1).reshape(bins * bins, 2)
    going = np.repeat(~ended, bins)
    np.testing.assert_allclose(at_goal[going], [[1.0, 0.0]] * going.sum(), atol=1e-15)


def test_every_action_is_needed():
    origin, outcome, action = random_steps(12, 7, 5, 3, 0)
    with pytest.raises(InvalidInput, match="no step takes action 1"):
        kernel_transitions(origin, outcome, np.where(action == 1, 0, action), 7, np.arange(7) >= 5, 3)
    car = mountain_car(bins=10, expert="optimal", scale=10.0)
    with pytest.raises(InvalidInput, match="trajectories"):
        car.with_kernel_transitions(car.drive(1, length=1, seed=0))


def test_a_kernel_car_is_the_formula_applied_to_its_drives():
    bins = 8
    car = mountain_car(bins=bins)
    drives = car.drive(3, length=40, seed=1)
    kernel = car.with_kernel_transitions(drives)
    went = [(i, t) for i in range(3) for t in range(drives.lengths[i])]

    def node(places) -> Places:
        x, v = (np.array([u[i, t] for i, t in places]) for u in (drives.position, drives.velocity))
        return Places((x + 1.2) / 1.8 * (bins - 1), (v + 0.07) / 0.14 * (bins - 1), x >= GOAL)

    action = np.array([drives.action[i, t] for i, t in went])
    origin, outcome = node(went), node([(i, t + 1) for i, t in went])
    T, without = by_the_formula(origin, outcome, action, bins, car.nodes.ended, 3, BANDWIDTH)
    going = np.repeat(~car.mdp.terminal, 3)
    np.testing.assert_allclose(kernel.mdp.transitions.matrix.toarray()[going], T[going], atol=1e-12)
    assert kernel.unsupported == without > 0
    assert f"{without} pairs without support" in repr(kernel)
    assert kernel.exact is car.mdp
    assert car.unsupported is None
    np.testing.assert_array_equal(kernel.expert, car.expert)  # who still knows the exact model


def test_the_option_is_a_thousand_drives_of_the_expert_by_default(car):
    small = mountain_car(bins=20)
    by_option = mountain_car(bins=20, transitions="kernel")
    by_hand = small.with_kernel_transitions(small.drive(1000, 200, seed=0))
    assert abs(by_option.mdp.transitions.matrix - by_hand.mdp.transitions.matrix).max() == 0.0
    assert by_option.unsupported == by_hand.unsupported
    other = mountain_car(bins=20, transitions="kernel", seed=1)
    assert abs(by_option.mdp.transitions.matrix - other.mdp.transitions.matrix).max() > 0.0


def test_kernel_transitions_stay_sparse_and_near_the_exact_ones_where_the_expert_drives(car, drives):
    """A mean successor is off by less than half a step of the grid in most of the pairs that were often seen (measured:
    0.93 of them in position, 0.92 in velocity)."""
    kernel = car.with_kernel_transitions(drives)
    T = kernel.mdp.transitions.matrix
    assert T.nnz < 0.001 * T.shape[0] * T.shape[1]
    seen = car.discretise(drives).counts.reshape(-1) >= 10
    x, v = car.nodes.all
    for coordinate, width, least in ((x, 1.8 / 99, 0.9), (v, 0.14 / 99, 0.9)):
        off = np.abs(T @ coordinate - car.mdp.transitions.matrix @ coordinate)[seen] / width
        assert np.mean(off < 0.5) > least


def test_who_plans_with_a_kernel_model_arrives_if_the_drives_behind_it_covered_enough():
    """Solved on kernel transitions from noisy drives (2,204 of 10,080 pairs without support), the true reward drives
    all of 200 cars to the goal. From soft experts' drives, which keep to one track (5,942), nobody arrives: what lies
    off it takes the nearest step on it, and planning is drawn to such shortcuts."""
    for expert, arrive in (("noisy", True), ("soft", False)):
        kernel = mountain_car(bins=60, transitions="kernel", expert=expert)
        planned = replace(kernel, expert=rv.solve(kernel.mdp, kernel.true_reward).policy)
        assert kernel.unsupported is not None
        assert (kernel.unsupported < 0.3 * 10_080) == arrive
        assert (planned.drive(200, seed=0).reached.mean() > 0.8) == arrive


# a kernel model as the world itself


@pytest.fixture(scope="module")
def small() -> MountainCar:
    return mountain_car(bins=14)


@pytest.fixture(scope="module")
def few(small) -> Drives:
    return small.drive(60, seed=0)


@pytest.fixture(scope="module")
def known(small, few) -> MountainCar:
    return small.with_kernel_transitions(few, known=True)


def test_a_known_estimate_is_the_same_estimate_and_the_truth(small, few, known):
    kernel = small.with_kernel_transitions(few)
    assert known.exact is known.mdp
    assert known.truth.mdp is known.mdp
    assert abs(known.mdp.transitions.matrix - kernel.mdp.transitions.matrix).max() == 0.0
    assert known.unsupported == kernel.unsupported
    np.testing.assert_array_equal(known.true_reward, small.true_reward)
    np.testing.assert_array_equal(known.mdp.start(), small.mdp.start())


def test_its_expert_is_its_soft_optimum_and_the_truth_explains_him(known):
    """EVD of the true reward is 0; what the expert himself loses is what a soft optimum loses against a hard one."""
    mdp, reward = known.mdp, known.true_reward
    np.testing.assert_allclose(known.expert, rv.solve(mdp, reward).policy, atol=1e-12)
    assert known.truth.evd(reward) == pytest.approx(0.0, abs=1e-9)
    lost = mdp.start() @ rv.solve_hard(mdp, reward).value - rv.metrics.expected_return(mdp, reward, known.expert)
    assert known.truth.stochastic_evd(known.expert) == pytest.approx(lost, abs=1e-9)
    assert lost > 0.0


def test_its_demonstrations_make_only_moves_that_the_model_has(known):
    demos, T = known.demonstrate(30, length=50, seed=3), known.mdp.transitions.matrix
    steps, starts = demos.steps, demos.starts
    assert demos.n_decisions > 1000
    assert all(T[s * 3 + a, there] > 0.0 for s, a, there in zip(steps.state, steps.action, steps.next_state))
    assert starts is not None
    assert (known.mdp.start()[starts > 0] > 0.0).all()
    again = rv.simulate(known.mdp, known.expert, 30, 50, 3)
    np.testing.assert_array_equal(demos.counts, again.counts)


def test_it_evaluates_as_anyone_would_who_takes_the_model_for_the_truth(known):
    demos = known.demonstrate(100, seed=0)
    fit = rv.CCP(known.reward_model(), l2=1e-3).fit(known.mdp, demos)
    own, given = known.evaluate(fit), rv.evaluate(fit, known.mdp, known.true_reward, demos, expert=known.expert)
    assert dict(own) == pytest.approx(dict(given), rel=1e-9)


def test_its_experts_can_be_changed_and_know_it_too(known):
    best = rv.solve_hard(known.mdp, known.true_reward).policy
    np.testing.assert_array_equal(known.with_expert("optimal").expert, best)


def test_an_estimate_that_is_not_known_stays_one(small, few):
    kernel = small.with_kernel_transitions(few, known=False)
    assert kernel.exact is small.mdp
    assert kernel.truth.mdp is small.mdp
    np.testing.assert_array_equal(kernel.expert, small.expert)
    drives = kernel.discretise(kernel.drive(5, 40, 2))
    np.testing.assert_array_equal(kernel.demonstrate(5, 40, 2).counts, drives.counts)


@pytest.mark.parametrize("expert", ["soft", "noisy", "optimal"])
def test_an_option_makes_the_estimate_the_world(expert):
    """Of experts who drive as the first did, and are as good on the estimate as he was on the exact model."""
    given = {"bins": 12, "expert": expert, "noise": 0.4}
    car = mountain_car(**given)
    by_hand = car.with_kernel_transitions(car.drive(40, 100, seed=5), known=True).with_expert(expert, 0.4)
    by_option = mountain_car(**given, transitions="kernel", trajectories=40, length=100, seed=5, known=True)
    assert by_option.exact is by_option.mdp
    assert abs(by_option.mdp.transitions.matrix - by_hand.mdp.transitions.matrix).max() == 0.0
    np.testing.assert_array_equal(by_option.expert, by_hand.expert)


def test_known_is_a_flag_that_only_an_estimate_has(small, few):
    with pytest.raises(InvalidInput, match='`known` has no effect with `transitions="exact"`'):
        mountain_car(bins=8, known=True)
    for wrong in (1, "yes", None):
        with pytest.raises(InvalidInput, match="`known`: expected True or False"):
            mountain_car(bins=8, transitions="kernel", known=wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="`known`: expected True or False"):
            small.with_kernel_transitions(few, known=wrong)
