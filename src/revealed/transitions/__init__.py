"""T as an operator: `expect` (T V), `push` (Tᵀ d) and `mix` by a policy. No |S|×|A|×|S| array anywhere."""

from revealed.transitions.csr import CsrTransitions, RowBlock, as_csr, is_sparse
from revealed.transitions.estimated import EstimatedTransitions, TransitionSlopes
from revealed.transitions.graph import can_reach, reaching, way_to, ways_to
from revealed.transitions.pattern import Structure, separator_size

__all__ = [
    "CsrTransitions",
    "EstimatedTransitions",
    "RowBlock",
    "Structure",
    "TransitionSlopes",
    "as_csr",
    "can_reach",
    "is_sparse",
    "reaching",
    "separator_size",
    "way_to",
    "ways_to",
]
