"""A model on a device is the same model: what is made of it stays there, what travels does without."""

import pickle

import jax
import numpy as np
import pytest

import revealed as rv
from revealed.device_model import SPLIT, DeviceModel, Placement
from rings import ring


def test_to_shares_everything_and_leaves_the_model_as_it_was():
    here = ring("discounted")
    placed = here.mdp.to("cpu", devices=1)
    assert here.mdp.device is None
    assert placed.device is not None
    assert (placed.device.kind, placed.device.dtype, placed.device.devices) == ("cpu", "float64", 1)
    assert placed.transitions is here.mdp.transitions
    assert isinstance(placed.on_device, DeviceModel)
    assert placed.on_device is placed.on_device
    assert placed.to("host").device is None
    assert placed.to("host").transitions is here.mdp.transitions


def test_models_made_of_a_placed_one_are_placed_alike_with_arrays_of_their_own():
    placed = ring("discounted").mdp.to("cpu", dtype="float32", devices=1)
    first = placed.on_device
    made = {
        "replace(discount)": placed.replace(discount=0.5),
        "replace(initial)": placed.replace(initial=0),
        "toward": placed.toward(3),
        "unroll": placed.unroll(2),
        "with_labels": placed.with_labels(state_labels=[f"s{s}" for s in range(16)]),
    }
    for name, other in made.items():
        assert other.device == placed.device, name
    assert made["replace(discount)"].on_device is not first
    assert float(made["replace(discount)"].on_device.gamma) == 0.5
    assert made["with_labels"].on_device is first  # labels change nothing there
    back = made["unroll"].to("host").base
    assert back is not None
    assert back.device is None


def test_pickles_know_where_to_go_but_carry_no_arrays():
    placed = ring("discounted").mdp.to("cpu", devices=1)
    _ = placed.on_device
    again = pickle.loads(pickle.dumps(placed))
    assert "on_device" not in vars(again)
    assert again.device == placed.device
    np.testing.assert_array_equal(again.on_device.going, placed.on_device.going)


NOT_HERE = "`kind`: expected one of {kinds}, host on this machine; got "


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("abacus",), NOT_HERE + "'abacus'."),
        (("CPU",), NOT_HERE + "'CPU'. Did you mean \"cpu\"?"),
        (("cuda:0",), NOT_HERE + "'cuda:0'. For a graphics card, use \"gpu\"."),
        (("host", "float32"), "`dtype` requires a device: it has no effect on the host."),
        (("cpu", "float16"), "`dtype`: expected one of float64, float32; got 'float16'. Did you mean float64?"),
        (("cpu", "float64", 0), "`devices`: expected a whole number, 1 to {n} (cpu); got 0. {split}"),
        (("cpu", "float64", 10_000), "`devices`: expected a whole number, 1 to {n} (cpu); got 10000. {split}"),
    ],
)
def test_what_this_machine_does_not_have_is_an_error_that_tells_what_it_has(arguments, message):
    kinds = [kind for kind in ("cpu", "gpu", "tpu") if _there(kind)]
    with pytest.raises(rv.errors.InvalidOption) as caught:
        ring("discounted").mdp.to(*arguments)
    told = {"kinds": ", ".join(kinds), "n": len(jax.devices("cpu")), "split": SPLIT}
    assert str(caught.value) == message.format(**told)


@pytest.mark.skipif("_there('gpu')", reason="there is a GPU here")
def test_a_card_that_jax_does_not_see_is_told_how_to_be_seen():
    with pytest.raises(
        rv.errors.InvalidOption, match=r'JAX sees no GPU here. To install it: pip install "jax\[cuda12\]", or'
    ):
        ring("discounted").mdp.to("gpu")


def test_a_placed_model_says_where_it_is():
    assert repr(ring("discounted").mdp.to("cpu", devices=1)).endswith("discount 0.95, 4 terminal, on cpu)")
    assert str(Placement("gpu", 2)) == "2 × gpu"


def _there(kind: str) -> bool:
    try:
        return bool(jax.devices(kind))
    except RuntimeError:
        return False
