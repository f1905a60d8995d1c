"""Values and arrows land where they should: looked up among the artists, not in pixels."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from revealed.environments import ACTIONS, grid_transitions
from revealed.errors import InvalidInput
from revealed.plots import LONGEST, MOVES, RED, plot_arrows, plot_grid

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
    for action, (down, right) in enumerate(MOVES):
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
    bar = ax.figure.axes[1]
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


def test_the_host_program_keeps_its_plotting_settings(tmp_path):
    code = """
import sys, matplotlib, numpy as np
from matplotlib.figure import Figure
before = matplotlib.rcParams.copy()  # which, unlike dict(), does not choose a backend
from revealed.plots import plot_grid
figure = Figure()
plot_grid(figure.subplots(), np.arange(4), (2, 2), np.full((4, 5), 0.2))
figure.savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams.copy() == before
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "picture.png")], check=True)
