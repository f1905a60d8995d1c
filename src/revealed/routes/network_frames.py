"""Networks back as tables, with the columns that `RoadNetwork.from_frame` looks for by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from revealed.checks import Ints
from revealed.naming import label_array
from revealed.routes.link_tables import CORNERS

if TYPE_CHECKING:
    import pandas as pd

    from revealed.routes.network import RoadNetwork


def write_links(network: RoadNetwork) -> pd.DataFrame:
    """See `RoadNetwork.links_frame`."""
    import pandas as pd

    columns = {"link": _labelled(network.links, range(network.n_links))}
    if network.nodes is not None:
        columns["from"] = _labelled(network.nodes.labels, network.nodes.start)
        columns["to"] = _labelled(network.nodes.labels, network.nodes.end)
    columns |= {name: values.copy() for name, values in network.link_values.items()}
    if network.coordinates is not None:
        columns |= dict(zip(CORNERS, network.coordinates.reshape(-1, 4).T.copy(), strict=True))
    return pd.DataFrame(columns)


def write_turns(network: RoadNetwork) -> pd.DataFrame:
    """See `RoadNetwork.turns_frame`."""
    import pandas as pd

    ends = {
        "from_link": _labelled(network.links, network.source),
        "to_link": _labelled(network.links, network.target),
    }
    return pd.DataFrame(ends | {name: values.copy() for name, values in network.turn_values.items()})


def _labelled(labels: tuple[Any, ...], index: Ints | range) -> pd.Series:
    import pandas as pd

    return pd.Series(label_array(labels, list(index))).infer_objects()
