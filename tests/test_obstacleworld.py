"""Obstacleworld against a plain reading of its map, cell by cell."""

import numpy as np
import pytest

import revealed as rv
from revealed.environments import ACTIONS, grid_transitions, obstacleworld
from revealed.environments.obstacleworld import corridor
from revealed.errors import InvalidInput
from revealed.metrics import expected_return

WORTH = {".": 0.2, "#": 0.0, "G": 1.0}
STEP = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}


def moved(rows: int, columns: int, r: int, c: int, action: str) -> tuple[int, int]:
    """Where one move leads; off the grid it stays put."""
    down, right = STEP[action]
    if 0 <= r + down < rows and 0 <= c + right < columns:
        return r + down, c + right
    return r, c


@pytest.mark.parametrize("given", [{}, {"size": 5, "seed": 3}, {"layout": "..#\nG#.\n"}, {"layout": "....#..G"}])
def test_the_world_is_what_a_plain_reading_of_its_map_says(given):
    world = obstacleworld(**given)
    lines = world.layout.split("\n")
    rows, columns = len(lines), len(lines[0])
    assert world.shape == (rows, columns)
    T = world.mdp.transitions.matrix.toarray()
    for r in range(rows):
        for c in range(columns):
            s, mark = r * columns + c, lines[r][c]
            assert list(world.features[s]) == [mark == ".", mark == "#", mark == "G"]
            assert list(world.true_reward[s]) == pytest.approx([3.0 * WORTH[mark]] * 4, abs=0)
            for a, action in enumerate(("up", "down", "left", "right")):
                there = moved(rows, columns, r, c, action)
                expected = np.zeros(rows * columns)
                expected[there[0] * columns + there[1]] = 1.0
                np.testing.assert_array_equal(T[s * 4 + a], expected)


@pytest.mark.parametrize(("wind", "stay"), [(0.0, True), (0.3, True), (1.0, False), (0.25, False)])
def test_wind_carries_to_a_random_neighbour_instead(wind, stay):
    rows, columns, names = 3, 4, ACTIONS[: 5 if stay else 4]
    T = grid_transitions(rows, columns, wind, stay).toarray()
    for s in range(rows * columns):
        for a, action in enumerate(names):
            expected = np.zeros(rows * columns)
            r, c = moved(rows, columns, *divmod(s, columns), action)
            expected[r * columns + c] += 1.0 - wind
            for gust in ("up", "down", "left", "right"):
                r, c = moved(rows, columns, *divmod(s, columns), gust)
                expected[r * columns + c] += wind / 4
            np.testing.assert_allclose(T[s * len(names) + a], expected, atol=1e-15)


def test_the_defaults():
    world = obstacleworld()
    assert world.shape == (16, 16)
    assert world.mdp.discount == 0.95
    assert world.feature_names == ("path", "obstacle", "goal")
    assert world.true_weights is not None
    assert world.true_weights.tolist() == pytest.approx([0.6, 0.0, 3.0], rel=1e-15)
    np.testing.assert_array_equal(world.mdp.start(), np.full(256, 1 / 256))
    np.testing.assert_allclose(world.expert, rv.solve(world.mdp, world.true_reward).policy, atol=1e-12)
    assert world.mdp.action_labels == ("up", "down", "left", "right")


def test_the_goal_is_a_corner_and_an_ordinary_state():
    world = obstacleworld(size=5)
    assert not world.mdp.terminal.any()
    assert np.flatnonzero(world.features[:, 2]).tolist() == [24]
    up, down = 0, 1
    T = world.mdp.transitions.matrix.toarray()
    assert T[24 * 4 + up, 19] == 1.0  # one can leave it
    assert T[24 * 4 + down, 24] == 1.0  # and stay by pushing at the wall


@pytest.mark.parametrize("size", [2, 3, 16])
def test_the_diagonal_corridor_is_free_however_dense_the_obstacles(size):
    lines = obstacleworld(size=size, density=1.0).layout.split("\n")
    for r in range(size):
        for c in range(size):
            goal = r == c == size - 1
            assert lines[r][c] == ("G" if goal else "." if abs(r - c) <= 1 else "#")


def test_obstacles_are_as_dense_as_asked_off_the_corridor():
    assert "#" not in obstacleworld(size=10, density=0.0).layout
    size, p = 60, 0.3
    free = size * size - (size + 2 * (size - 1))
    n = obstacleworld(size=size, density=p, seed=5).layout.count("#")
    assert abs(n - p * free) < 4.0 * np.sqrt(p * (1 - p) * free)


def test_the_seed_draws_the_map():
    assert obstacleworld(seed=1).layout == obstacleworld(seed=1).layout != obstacleworld(seed=2).layout


def test_a_map_can_be_drawn_as_text_and_drawn_again():
    world = obstacleworld(
        layout="""
        ..#.
        .##G
        ....
        """
    )
    assert world.layout == "..#.\n.##G\n...."
    assert world.shape == (3, 4)
    again = obstacleworld(layout=obstacleworld().layout)
    np.testing.assert_array_equal(again.features, obstacleworld().features)
    np.testing.assert_array_equal(again.expert, obstacleworld().expert)


def test_several_goals_are_worth_the_same():
    world = obstacleworld(layout="G.G")
    assert world.true_reward[:, 0].tolist() == pytest.approx([3.0, 0.6, 3.0])
    np.testing.assert_allclose(world.expert[0], world.expert[2][[0, 1, 3, 2]], rtol=1e-12)  # left and right swapped


@pytest.mark.parametrize(
    ("layout", "place"),
    [("..G\n.x.", "line 2, column 2"), ("..G\n\n..", "line 2"), ("..G\n..\n...", "line 2")],
)
def test_a_mistake_in_a_map_is_shown_where_it_is(layout, place):
    with pytest.raises(InvalidInput, match=place):
        obstacleworld(layout=layout)


def test_the_expert_prefers_a_way_round_to_the_obstacles_and_stays_at_the_goal():
    """Both ways from the upper middle take two steps; the obstacle is worth 0.6 less, so that way is about exp(0.6)
    times less likely."""
    world = obstacleworld(layout="...\n.#G")
    right, down = 3, 1
    assert world.expert[1, right] > 0.5 > world.expert[1, down]
    assert world.expert[1, right] / world.expert[1, down] == pytest.approx(np.exp(0.6), rel=0.1)
    stays = rv.Chain(world.mdp, world.expert).occupancy(world.mdp.start())
    assert stays.argmax() == 5


def test_most_of_the_time_the_expert_is_at_the_goal_which_chance_hardly_finds():
    """Discounted visits to the goal: 0.41 of all (measured) against 0.004 of a uniform policy."""
    world = obstacleworld()
    share = {}
    for name, policy in (("expert", world.expert), ("uniform", world.mdp.uniform_policy())):
        visits = rv.Chain(world.mdp, policy).occupancy(world.mdp.start())
        share[name] = visits[-1] / visits.sum()
    assert share["expert"] > 0.3
    assert share["uniform"] < 0.01
    best = rv.solve_hard(world.mdp, world.true_reward)
    assert expected_return(world.mdp, world.true_reward, world.expert) > 0.85 * world.mdp.start() @ best.value


def test_blanks_around_lines_do_not_matter_and_blanks_within_are_refused():
    assert obstacleworld(layout="\n  ..#\n\n  ..G  \n").layout == "..#\n..G"
    with pytest.raises(InvalidInput, match=r"`layout`.*line 1, column 2"):
        obstacleworld(layout=". G")


# a goal that absorbs, a start in the corner, a corridor of any width


@pytest.mark.parametrize("given", [{"size": 6, "seed": 2}, {"layout": "G..\n.#G"}, {"layout": "G"}])
def test_who_has_reached_an_absorbing_goal_stays_and_all_else_is_as_before(given):
    world, before = obstacleworld(**given, goal="absorbing"), obstacleworld(**given)
    T, usual = (w.mdp.transitions.matrix.toarray() for w in (world, before))
    goal = np.repeat(world.features[:, 2] == 1.0, 4)
    np.testing.assert_array_equal(T[goal], np.repeat(np.eye(world.mdp.n_states), 4, axis=0)[goal])
    np.testing.assert_array_equal(T[~goal], usual[~goal])
    np.testing.assert_array_equal(world.true_reward, before.true_reward)
    assert world.layout == before.layout
    assert not world.mdp.terminal.any()


@pytest.mark.parametrize(("discount", "scale"), [(0.95, 3.0), (0.5, 1.0), (0.99, 10.0)])
def test_an_absorbing_goal_is_worth_its_pay_and_a_free_choice_among_four_for_ever(discount, scale):
    """V = r + log 4 + γV, by hand; all actions do the same there, so the expert chooses at random."""
    world = obstacleworld(5, discount=discount, scale=scale, goal="absorbing")
    found = rv.solve(world.mdp, world.true_reward)
    assert found.value[24] == pytest.approx((scale + np.log(4)) / (1.0 - discount), rel=1e-10)
    np.testing.assert_allclose(world.expert[24], 0.25, rtol=1e-12)
    visits = rv.Chain(world.mdp, world.expert).occupancy(np.eye(25)[24])
    np.testing.assert_allclose(visits, np.eye(25)[24] / (1.0 - discount), rtol=1e-10)


def test_walks_do_not_leave_an_absorbing_goal():
    steps = obstacleworld(5, goal="absorbing").demonstrate(50, seed=0).steps
    assert steps is not None
    there = steps.state == 24
    assert there.any()
    assert (steps.next_state[there] == 24).all()


@pytest.mark.parametrize("given", [{"size": 4, "seed": 1}, {"layout": "..#\n#.G"}])
def test_all_walks_start_in_the_corner_if_asked(given):
    world = obstacleworld(**given, start="corner")
    np.testing.assert_array_equal(world.mdp.start(), np.eye(world.mdp.n_states)[0])
    starts = world.demonstrate(40, seed=0).starts
    assert starts is not None
    np.testing.assert_array_equal(starts, 40 * np.eye(world.mdp.n_states)[0])
    np.testing.assert_allclose(world.expert, obstacleworld(**given).expert, atol=1e-12)  # an optimum has no start


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_the_corridor_is_as_wide_as_asked_around_the_diagonal(size, width):
    lines = obstacleworld(size, density=1.0, width=width).layout.split("\n")
    for r in range(size):
        free = [c for c in range(size) if lines[r][c] != "#"]
        assert free == [c for c in range(size) if 2 * abs(r - c) < width]
        assert corridor(size, width)[r].nonzero()[0].tolist() == free
    assert corridor(20, width)[10].sum() == width


def test_a_narrower_corridor_leaves_the_obstacles_elsewhere():
    narrow, wide = (obstacleworld(9, seed=4, width=width).features.reshape(9, 9, 3) for width in (1, 3))
    np.testing.assert_array_equal(narrow[~corridor(9, 3)], wide[~corridor(9, 3)])
    assert (narrow[corridor(9, 3)] != wide[corridor(9, 3)]).any()
    np.testing.assert_array_equal(obstacleworld(9, seed=4).features.reshape(9, 9, 3), wide)  # by default


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"width": 2}, "`width`: expected an odd number of cells: .*; got 2"),
        ({"width": 0}, "`width`: expected a whole number, at least 1; got 0"),
        ({"width": 1.0}, "`width`: expected a whole number"),
        ({"goal": "terminal"}, "`goal`: expected one of ordinary, absorbing; got 'terminal'"),
        ({"goal": "absorb"}, "Did you mean absorbing?"),
        ({"start": "goal"}, "`start`: expected one of uniform, corner; got 'goal'"),
        ({"start": 0}, "`start`"),
        ({"layout": "..G", "start": "middle"}, "`start`"),
    ],
)
def test_what_cannot_be_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        obstacleworld(**given)


def test_a_drawn_map_needs_no_size_density_seed_or_width():
    given = {"size": 0, "density": 7.0, "seed": "x", "width": 2}
    assert obstacleworld(layout="..#\n..G", **given).layout == "..#\n..G"  # pyright: ignore[reportArgumentType]
