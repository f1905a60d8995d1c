"""Values and arrows land where they should: looked up among the artists, not in pixels."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import revealed as rv
from revealed.environments import (
    ACTIONS,
    garnet,
    grid_transitions,
    mountain_car,
    objectworld,
    obstacleworld,
    rust_bus,
)
from revealed.errors import InvalidInput, RevealedError
from revealed.metrics import policy_value
from revealed.plots import (
    BLANK,
    COLORS,
    LONGEST,
    MOVES,
    RED,
    plot_arrows,
    plot_grid,
    plot_objects,
    plot_plane,
    plot_states,
)

SHAPE = (3, 4)
N = 12


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def always(action: str) -> np.ndarray:
    return np.tile(np.eye(5)[ACTIONS.index(action)], (N, 1))


def on_screen(ax, quiver) -> np.ndarray:
    """(S, 2) arrows in pixels: x to the right, y upwards."""
    tip = np.column_stack([quiver.X + quiver.U, quiver.Y + quiver.V])
    return ax.transData.transform(tip) - ax.transData.transform(np.column_stack([quiver.X, quiver.Y]))


def test_the_moves_are_those_of_the_grid_world():
    middle = 1 * SHAPE[1] + 1
    T = grid_transitions(*SHAPE, stay=True).toarray()
    for action, (down, right) in enumerate(MOVES.values()):
        assert T[middle * 5 + action, middle + down * SHAPE[1] + right] == 1.0, ACTIONS[action]


def test_each_value_lands_in_its_cell_and_the_first_row_is_on_top(ax):
    image = plot_grid(ax, np.arange(N), SHAPE)
    shown = image.get_array()
    assert shown is not None
    assert shown.shape == SHAPE
    assert [shown[s // 4, s % 4] for s in range(N)] == list(range(N))
    low, high = ax.get_ylim()
    assert low > high  # the axis runs downwards, so row 0 is on top
    assert image.origin == "upper"


def test_light_is_high_and_dark_is_low(ax):
    image = plot_grid(ax, np.arange(N), SHAPE)
    brightness = image.to_rgba(np.arange(N))[:, :3].sum(axis=1)
    assert (np.diff(brightness) > 0).all()


def test_colours_can_be_fixed_so_that_panels_compare(ax):
    image = plot_grid(ax, np.arange(N), SHAPE, vmin=-5, vmax=20)
    assert image.get_clim() == (-5, 20)


@pytest.mark.parametrize(
    ("action", "direction"), [("up", (0, 1)), ("down", (0, -1)), ("left", (-1, 0)), ("right", (1, 0))]
)
def test_a_sure_policy_points_that_way_on_the_screen_in_every_cell(ax, action, direction):
    plot_grid(ax, np.zeros(N), SHAPE, always(action))
    (quiver,) = ax.collections
    arrows = on_screen(ax, quiver)
    np.testing.assert_allclose(arrows / np.linalg.norm(arrows, axis=1, keepdims=True), [direction] * N, atol=1e-12)
    np.testing.assert_array_equal(np.column_stack([quiver.Y, quiver.X]), np.argwhere(np.ones(SHAPE)))


def test_an_arrow_is_as_long_as_the_policy_is_decided(ax):
    policy = np.tile([0.25, 0.25, 0.25, 0.25, 0.0], (N, 1))
    policy[1] = [0, 0, 0, 1, 0]
    policy[2] = [0, 0, 0, 0.5, 0.5]
    policy[3] = [0.5, 0, 0, 0.5, 0]
    policy[4] = [0, 0, 0, 0, 1]
    quiver = plot_arrows(ax, policy, SHAPE)
    right, down = np.asarray(quiver.U), np.asarray(quiver.V)
    np.testing.assert_allclose(np.hypot(right, down)[:5] / LONGEST, [0, 1, 0.5, np.sqrt(0.5), 0], atol=1e-12)
    assert right[3] > 0 > down[3]
    assert quiver.angles == "xy"


def test_arrows_are_red_and_four_actions_do(ax):
    from matplotlib.colors import to_rgba

    quiver = plot_arrows(ax, np.full((N, 4), 0.25), SHAPE)
    np.testing.assert_allclose(np.asarray(quiver.get_facecolor())[0], to_rgba(RED))


def test_everything_is_labelled(ax):
    plot_grid(ax, np.arange(N), SHAPE, title="truth", label="reward")
    (bar,) = ax.child_axes
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), bar.get_ylabel()) == ("truth", "column", "row", "reward")
    assert ax.xaxis.label.get_fontsize() >= 10


def test_ticks_are_whole_rows_and_columns(ax):
    plot_grid(ax, np.arange(N), SHAPE)
    ax.figure.draw_without_rendering()
    assert all(float(tick).is_integer() for tick in [*ax.get_xticks(), *ax.get_yticks()])


@pytest.mark.parametrize(
    ("values", "policy", "name"),
    [
        (np.zeros(N - 1), None, "values"),
        (np.zeros(N), np.zeros((N, 3)), "policy"),
        (np.zeros(N), np.zeros(N), "policy"),
    ],
)
def test_what_does_not_fit_the_grid_is_refused(ax, values, policy, name):
    with pytest.raises(InvalidInput, match=name):
        plot_grid(ax, values, SHAPE, policy)


def test_columns_of_a_policy_are_found_by_the_names_of_its_actions(ax):
    """Gymnasium's order is left, down, right, up; a name that is no direction moves nobody."""
    names = ("left", "down", "right", "up", "wait")
    quiver = plot_arrows(ax, np.vstack([np.eye(5), np.full((N - 5, 5), 0.2)]), SHAPE, actions=names)
    right, down = np.asarray(quiver.U)[:5] / LONGEST, np.asarray(quiver.V)[:5] / LONGEST
    np.testing.assert_allclose(right, [-1, 0, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(down, [0, 1, 0, -1, 0], atol=1e-12)  # rows run downwards


def test_where_nobody_acts_there_is_no_arrow(ax):
    """A terminal state has a row of zeros: not a dot, which would say that every direction is alike."""
    policy = np.full((N, 4), 0.25)
    policy[[3, 7]] = 0.0
    quiver = plot_arrows(ax, policy, SHAPE)
    cells = (4 * np.asarray(quiver.Y) + np.asarray(quiver.X)).tolist()
    assert cells == [s for s in range(N) if s not in (3, 7)]


@pytest.mark.parametrize(
    ("vmin", "vmax", "ends"),
    [(None, None, "neither"), (2, None, "min"), (None, 9, "max"), (2, 9, "both"), (0, 11, "neither")],
)
def test_the_colour_bar_is_pointed_where_values_lie_beyond_it(ax, vmin, vmax, ends):
    image = plot_grid(ax, np.arange(N), SHAPE, vmin=vmin, vmax=vmax)
    assert image.colorbar is not None
    assert image.colorbar.extend == ends


def test_a_wide_map_has_its_colour_bar_below(ax):
    for shape, orientation in (((3, 4), "vertical"), ((2, 6), "horizontal")):
        image = plot_grid(ax, np.arange(N), shape)
        assert image.colorbar is not None
        assert image.colorbar.orientation == orientation


def test_cells_without_a_value_are_blank(ax):
    from matplotlib.colors import to_rgba

    values = np.arange(N, dtype=float)
    values[5] = np.nan
    image = plot_grid(ax, values, SHAPE)
    shown = np.ma.masked_invalid(np.ma.asarray(image.get_array()))
    assert np.argwhere(np.ma.getmaskarray(shown)).tolist() == [[1, 1]]
    assert image.to_rgba(shown)[1, 1, 3] == 0.0  # transparent: what one sees is the colour of the axes
    assert ax.get_facecolor() == to_rgba(BLANK)
    red, green, blue, _ = to_rgba(BLANK)
    assert max(red, green, blue) - min(red, green, blue) > 0.1  # which no grey has


def brightness(image, values) -> np.ndarray:
    return np.asarray(image.norm(np.array(values)), dtype=float)


def test_logarithmic_colours_give_each_power_of_ten_the_same_step(ax):
    values = np.repeat([1.0, 0.1, 0.01], 4)
    image = plot_grid(ax, values, SHAPE, log=True)
    np.testing.assert_allclose(brightness(image, [1.0, 0.1, 0.01]), [1.0, 0.5, 0.0], atol=1e-12)


def test_logarithmic_colours_end_four_powers_below_the_largest_and_zeros_are_black(ax):
    image = plot_grid(ax, np.r_[100.0, 1e-9, np.zeros(N - 2)], SHAPE, log=True)
    assert image.get_clim() == pytest.approx((0.01, 100.0))
    np.testing.assert_allclose(brightness(image, [0.0, 1e-9, 1.0]), [0.0, 0.0, 0.5], atol=1e-12)
    assert plot_grid(ax, np.ones(N), SHAPE, log=True, vmin=0.1, vmax=5.0).get_clim() == (0.1, 5.0)


def test_logarithms_need_something_positive(ax):
    with pytest.raises(InvalidInput, match="log"):
        plot_grid(ax, np.zeros(N), SHAPE, log=True)


def test_objects_are_a_disc_of_the_inner_colour_in_a_ring_of_the_outer_one(ax):
    from matplotlib.colors import to_rgba

    plot_grid(ax, np.zeros(N), SHAPE, colorbar=False)
    plot_objects(ax, [[0, 3, 1, 2], [2, 0, 3, 0]])
    outer, inner = ax.collections
    for discs in (outer, inner):
        np.testing.assert_array_equal(discs.get_offsets(), [[3, 0], [0, 2]])  # (column, row)
    np.testing.assert_allclose(outer.get_facecolor(), [to_rgba(COLORS[2]), to_rgba(COLORS[0])])
    np.testing.assert_allclose(inner.get_facecolor(), [to_rgba(COLORS[1]), to_rgba(COLORS[3])])
    assert outer.get_widths()[0] > inner.get_widths()[0]
    assert outer.get_zorder() <= inner.get_zorder()
    ax.figure.draw_without_rendering()


X, Y = np.linspace(-1.0, 2.0, 7), np.linspace(0.0, 1.0, 5)


def test_a_plane_shows_each_node_at_its_coordinates(ax):
    values = np.arange(35.0)  # state = index in x · 5 + index in y
    image = plot_plane(ax, values, X, Y, names=("position", "velocity"), title="car", label="reward")
    shown = image.get_array()
    assert shown is not None
    for i in range(7):
        for j in range(5):
            assert shown.reshape(5, 7)[j, i] == values[i * 5 + j]
    corners = np.asarray(image.get_coordinates())
    centre = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    np.testing.assert_allclose(centre[..., 0], np.tile(X, (5, 1)), atol=1e-12)
    np.testing.assert_allclose(centre[..., 1], np.tile(Y[:, None], (1, 7)), atol=1e-12)
    (bar,) = ax.child_axes
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), bar.get_ylabel()) == (
        "car",
        "position",
        "velocity",
        "reward",
    )


def test_pushes_point_left_and_right_and_the_goal_is_a_line(ax):
    push = np.zeros(35)
    push[3 * 5 + 2], push[4 * 5 + 1] = 1.0, -0.5
    plot_plane(ax, np.zeros(35), X, Y, push, mark=1.5)
    quiver = ax.collections[1]
    arrow = {(round(x, 9), round(y, 9)): u for x, y, u in zip(quiver.X, quiver.Y, quiver.U, strict=True)}
    assert arrow[0.5, 0.5] > 0.0 > arrow[1.0, 0.25]
    assert arrow[0.5, 0.5] == pytest.approx(-2.0 * arrow[1.0, 0.25])
    assert arrow[0.5, 0.5] < X[1] - X[0]  # no arrow reaches its neighbour's place
    assert sum(u != 0.0 for u in arrow.values()) == 2
    assert not np.any(quiver.V)
    (line,) = ax.lines
    assert list(line.get_xdata()) == [1.5, 1.5]
    assert len(ax.child_axes) == 1


def test_of_many_nodes_only_some_carry_an_arrow(ax):
    n = 100
    plot_plane(ax, np.zeros(n * n), np.arange(n), np.arange(n), np.ones(n * n), colorbar=False)
    assert len(ax.collections[1].X) <= 20 * 20
    assert not ax.child_axes


@pytest.mark.parametrize(("values", "push"), [(np.zeros(34), None), (np.zeros(35), np.zeros(36))])
def test_what_does_not_fit_the_plane_is_refused(ax, values, push):
    with pytest.raises(InvalidInput, match="values"):
        plot_plane(ax, values, X, Y, push)


def bars(ax) -> np.ndarray:
    """The height over each state's number."""
    (steps,) = ax.patches
    heights, edges, _ = steps.get_data()
    np.testing.assert_allclose(edges, np.arange(len(heights) + 1) - 0.5)  # each bar stands over its state
    return heights


def test_states_are_bars_with_the_policy_beside_them(ax):
    policy = np.array([[0.2, 0.8], [0.6, 0.4], [1.0, 0.0]])
    plot_states(ax, [1.0, -2.0, 3.0], policy, title="t", label="reward", actions=("keep", "go"), states="bin")
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("t", "bin", "reward")
    np.testing.assert_array_equal(bars(ax), [1.0, -2.0, 3.0])
    beside = ax.figure.axes[1]
    assert [line.get_label() for line in beside.lines] == ["keep", "go"]
    for a, line in enumerate(beside.lines):
        np.testing.assert_array_equal(line.get_ydata(), policy[:, a])
        assert line.get_linestyle() == "None"  # states without an order are marks, not a curve
        assert line.get_color() == RED
    assert beside.get_ylabel() == "probability"
    assert beside.get_legend() is not None


def test_ordered_states_are_joined_and_a_single_action_names_its_axis(ax):
    plot_states(ax, np.zeros(200), np.full((200, 1), 0.1), actions=("replace",), ordered=True)
    beside = ax.figure.axes[1]
    assert beside.lines[0].get_linestyle() == "-"
    assert beside.get_ylabel() == "probability of replace"
    assert beside.get_legend() is None
    assert beside.get_ylim()[1] == pytest.approx(0.108)


def test_marks_are_left_out_where_they_could_not_be_told_apart(ax):
    plot_states(ax, np.zeros(500), np.full((500, 2), 0.5))
    assert len(ax.figure.axes) == 1


def test_without_a_policy_there_is_nothing_beside_the_bars(ax):
    plot_states(ax, [1.0, np.nan, 2.0])
    assert len(ax.figure.axes) == 1


# worlds draw themselves

WORLDS = {
    "obstacleworld": lambda: obstacleworld(size=5),
    "objectworld": lambda: objectworld(size=6),
    "mountain car": lambda: mountain_car(bins=8),
    "bus": lambda: rust_bus(bins=20, discount=0.95),
    "garnet": lambda: garnet(12, 3),
}


@pytest.fixture(scope="module", params=WORLDS)
def world(request):
    return WORLDS[request.param]()


def drawn(ax) -> np.ndarray:
    """What the picture of a world shows, one number per state."""
    if ax.images:
        return np.ma.filled(np.ma.masked_invalid(ax.images[0].get_array()), np.nan).reshape(-1)
    if any(type(one).__name__ == "QuadMesh" for one in ax.collections):
        return np.ma.filled(np.ma.masked_invalid(ax.collections[0].get_array()), np.nan).reshape(8, 8).T.reshape(-1)
    return bars(ax)


def test_a_world_shows_its_reward_its_value_or_its_visits(world):
    going = ~world.mdp.terminal
    keep = world.true_reward[:, 0] if world.name.startswith("Rust") else world.true_reward.mean(axis=1)
    expected = {
        "reward": np.where(going, keep, np.nan),
        "value": np.where(going, policy_value(world.mdp, world.true_reward, world.expert), np.nan),
        "occupancy": rv.Chain(world.mdp, world.expert).occupancy(world.mdp.start()),
    }
    kept = " of keeping" if world.name.startswith("Rust") else ""
    labels = {"reward": f"true reward{kept}", "value": "expected return", "occupancy": "discounted visits"}
    for shown, values in expected.items():
        figure = world.plot(shown)
        np.testing.assert_allclose(drawn(figure.axes[0]), values, rtol=1e-9, atol=1e-12)
        bars_beside = [bar for axes in figure.axes for bar in axes.child_axes]
        assert labels[shown] in {axes.get_ylabel() for axes in (*figure.axes, *bars_beside)}
        assert figure.axes[0].get_title() == world.name
        figure.draw_without_rendering()


def test_values_follow_the_policy_that_is_drawn(world):
    uniform = world.mdp.uniform_policy()
    figure = world.plot("value", uniform)
    value = np.where(world.mdp.terminal, np.nan, policy_value(world.mdp, world.true_reward, uniform))
    np.testing.assert_allclose(drawn(figure.axes[0]), value, rtol=1e-9)
    visits = rv.Chain(world.mdp, uniform).occupancy(world.mdp.start())
    np.testing.assert_allclose(drawn(world.plot("occupancy", uniform).axes[0]), visits, rtol=1e-9, atol=1e-12)


def test_estimates_can_be_drawn_in_each_shape_that_a_reward_has(world):
    reward = np.where(world.mdp.terminal, np.nan, np.arange(world.mdp.n_states, dtype=float))
    table = np.arange(world.mdp.n_states, dtype=float)
    for given in (table, table[:, None], np.repeat(table[:, None], world.mdp.n_actions, axis=1)):
        figure = world.plot(given, policy=None, title="estimate")
        np.testing.assert_allclose(drawn(figure.axes[0]), reward)
        assert figure.axes[0].get_title() == "estimate"


def arrows(figure) -> list:
    return [one for axes in figure.axes for one in axes.collections if type(one).__name__ == "Quiver"]


def test_with_or_without_the_policy(world):
    """Arrows on maps and planes, curves or marks beside bars; without a policy neither."""
    with_it, without = world.plot(), world.plot(policy=None)
    lines = [line for axes in without.axes for line in axes.lines if len(line.get_xdata()) > 2]
    assert not arrows(without)
    assert not lines
    curves = [line for axes in with_it.axes for line in axes.lines if len(line.get_xdata()) > 2]
    assert arrows(with_it) or curves


def test_a_world_draws_on_axes_that_are_given(world):
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert world.plot(ax=right, title="here") is figure
    assert right.get_title() == "here"
    assert right.has_data()
    assert not left.has_data()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"values": "profit"}, "values"),
        ({"values": np.zeros(3)}, "values"),
        ({"policy": "uniform"}, "policy"),
        ({"policy": np.zeros((2, 2))}, "policy"),
    ],
)
def test_what_a_world_cannot_draw_is_refused_by_name(world, given, name):
    with pytest.raises(RevealedError, match=name):
        world.plot(**given)


def test_maps_show_visits_in_logarithms_unless_told_otherwise():
    from matplotlib.colors import LogNorm

    world = obstacleworld(size=5)
    assert isinstance(world.plot("occupancy").axes[0].images[0].norm, LogNorm)
    assert not isinstance(world.plot("occupancy", log=False).axes[0].images[0].norm, LogNorm)
    assert not isinstance(world.plot("reward").axes[0].images[0].norm, LogNorm)


def test_objects_are_shown_on_request():
    world = objectworld(size=6)
    discs = [len(world.plot(objects=show).axes[0].collections) for show in (False, True)]
    assert discs[1] == discs[0] + 2


def test_the_bus_shows_how_likely_an_engine_is_replaced():
    world = rust_bus(bins=20, discount=0.95)
    hazard = world.plot().axes[1]
    np.testing.assert_array_equal(hazard.lines[0].get_ydata(), world.expert[:, 1])
    assert hazard.get_ylabel() == "probability of replace"


def test_the_car_marks_the_goal_and_leaves_it_blank():
    world = mountain_car(bins=8)
    ax = world.plot().axes[0]
    assert np.asarray(ax.lines[0].get_xdata()).tolist() == [0.5, 0.5]
    assert np.isnan(drawn(ax)[world.mdp.terminal]).all()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position", "velocity")


@pytest.mark.parametrize(("action", "sign"), [(0, -1), (1, 0), (2, 1)])
def test_the_car_is_pushed_where_its_arrows_point(action, sign):
    world = mountain_car(bins=8)
    policy = np.where(world.mdp.terminal[:, None], 0.0, np.eye(3)[action])
    (quiver,) = arrows(world.plot(policy=policy))
    assert set(np.sign(quiver.U[quiver.X < 0.5])) == {sign}


def test_a_state_that_stands_for_the_end_has_no_cell():
    """A grid world may hold one terminal state more than it has cells."""
    T = np.zeros((N + 1, 4, N + 1))
    T[:N, :, :N] = grid_transitions(*SHAPE).toarray().reshape(N, 4, N)
    T[N - 1] = 0.0
    T[N - 1, :, N] = 1.0
    mdp = rv.MDP(T, 0.9, terminal=np.arange(N + 1) == N)
    reward = np.ones((N + 1, 4))
    world = rv.environments.GridWorld("maze", mdp, np.eye(N + 1), reward, mdp.uniform_policy(), shape=SHAPE)
    assert drawn(world.plot().axes[0]).size == N


def test_the_host_program_keeps_its_plotting_settings(tmp_path):
    code = """
import sys, matplotlib, numpy as np
from matplotlib.figure import Figure
before = matplotlib.rcParams.copy()  # which, unlike dict(), does not choose a backend
from revealed.plots import plot_grid
figure = Figure()
plot_grid(figure.subplots(), np.arange(4), (2, 2), np.full((4, 5), 0.2))
figure.savefig(sys.argv[1])
print("matplotlib.pyplot" in sys.modules, matplotlib.rcParams.copy() == before)
"""
    picture = tmp_path / "picture.png"
    said = subprocess.check_output([sys.executable, "-c", code, str(picture)], text=True)
    assert said.split() == ["False", "True"]  # pyplot was not loaded, the settings are the same
    assert picture.read_bytes().startswith(b"\x89PNG")
