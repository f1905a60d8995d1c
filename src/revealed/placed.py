"""Where a model's linear algebra is done: with SciPy on the host, or by JAX on the devices that `to` names."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from revealed.errors import InvalidInput

if TYPE_CHECKING:
    from revealed.device_model import DeviceModel, Placement


class Placed:
    """The part of an `MDP` that knows of devices."""

    def to(self, kind: str, dtype: str = "float64", devices: int | None = None) -> Self:
        """The same model whose linear algebra is done by JAX on the "gpu", the "tpu" or the "cpu"; "host" is the way
        back to SciPy.

        Estimates are the same. `dtype="float32"` iterates in single precision inside, with residuals and results in
        float64. The states are divided among `devices` devices, by default all of the kind.
        """
        from revealed.device_model import place

        return place(self, kind, devices=devices, dtype=dtype)

    def _but(self, left_out: str, **changes: Any) -> Self:
        """A copy that shares everything else, what was computed included."""
        other = object.__new__(type(self))
        other.__dict__.update({name: part for name, part in vars(self).items() if name != left_out} | changes)
        return other

    @cached_property  # `to` puts its choice in this place. A saved fit leaves it out: files go to other machines
    def device(self) -> Placement | None:
        """Where the linear algebra is done: what `to` chose; None is the host."""
        return None

    @cached_property
    def on_device(self) -> DeviceModel:
        """The model's arrays where `to` placed them, made when first asked for."""
        from revealed.device_model import DeviceModel

        if self.device is None:
            raise InvalidInput("on_device", "a model on a device", "one on the host", remedy='Use mdp.to("cpu").')
        return DeviceModel.of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Arrays on a device do not travel: they are made again where they arrive."""
        return {name: part for name, part in vars(self).items() if name != "on_device"}
