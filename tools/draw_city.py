"""Draw docs/images/city_flows.png and docs/images/city_fan.png: `python tools/draw_city.py`.

The first shows what trips through a generated city add up to, the second the ways between two links as the true
preferences have them and as a fit on simulated trips recovers them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import revealed as rv
from revealed.environments import City, city
from revealed.plots import add_colorbar
from revealed.routes.maps import draw_fan

FOLDER = Path(__file__).parents[1] / "docs" / "images"
LINKS, SEED = 3000, 3
DPI = 130  # many fine lines: more would be large rather than clear
TRIPS, DESTINATIONS = 2000, 200


def draw_flows(town: City, trips: rv.Demonstrations) -> Figure:
    figure = Figure(figsize=(10.4, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    town.plot(ax=left, title=f"A city of {town.network.n_links:,} links")
    town.plot(trips, ax=right, title=f"{trips.n_agents:,} trips through it")
    return figure


def draw_fans(town: City, fit: Any) -> Figure:
    """Truth and estimate on the same part of the map."""
    origin, destination = across(town)
    models = {
        "True preferences": rv.RouteChoice(town.network, town.reward, town.true_weights),
        "Recovered from trips": rv.RouteChoice.of(town.network, fit),
    }
    fans = {title: model.expected({(origin, destination): 1.0}).visits for title, model in models.items()}
    figure = Figure(figsize=(10.4, 5.2), layout="constrained")
    axes = figure.subplots(1, 2)
    widest = np.max(list(fans.values()), axis=0)
    for ax, (title, shares) in zip(axes, fans.items(), strict=True):
        style = {"title": title, "unit": "km", "around": widest, "colorbar": False}
        draw_fan(town.network, shares, origin, destination, ax=ax, **style)
    add_colorbar(axes[-1].collections[-1], list(axes), "trips that use the link (%)", shrink=0.7, aspect=28, pad=0.02)
    return figure


def across(town: City) -> tuple[int, int]:
    """Two links on local streets, in the south-west and in the north-east of the city."""
    places = town.network.coordinates
    assert places is not None
    local = np.flatnonzero(town.kind == 0)
    middle = places[local].mean(axis=1)
    corners = [np.quantile(middle, q, axis=0) for q in (0.17, 0.83)]
    origin, destination = (int(local[np.argmin(np.linalg.norm(middle - corner, axis=1))]) for corner in corners)
    return origin, destination


if __name__ == "__main__":
    town = city(LINKS, seed=SEED)
    trips = town.demonstrate(TRIPS, seed=0, destinations=DESTINATIONS)
    draw_flows(town, trips).savefig(FOLDER / "city_flows.png", dpi=DPI)
    fit = rv.NFXP(town.reward).fit(town.mdp, trips)
    draw_fans(town, fit).savefig(FOLDER / "city_fan.png", dpi=DPI)
    print(f"wrote {FOLDER / 'city_flows.png'} and city_fan.png")
