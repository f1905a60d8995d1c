"""Published data, ready to fit: a panel, the model that belongs to it, and where it comes from."""

from revealed.datasets.rust_bus import BusData, rust_bus

__all__ = ["BusData", "rust_bus"]
