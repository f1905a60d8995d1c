"""Which method suits this data, and why: the paper's last section as software.

What is measured comes from `data.py` (coverage of π̂_E; precision of feature counts and of π̂_E) and
`trials.py` (timed iterations; the three fits; refits on resampled agents, judged by the agents left out). In
short, the rules of `rules.py`: of methods that predict left-out agents equally well, the cheapest; none that
predicts worse; and where that is undecided, what the paper says: NFXP = MCE-IRL where feature counts are known well
while π̂_E is not, else the cheapest.
"""

from revealed.advisor.advice import Advice, advise

__all__ = ["Advice", "advise"]
