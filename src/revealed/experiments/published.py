"""The paper's seconds: its Table 2 (training time) and Tables 5 and 6 (time of each computation), as printed there.

They were measured on one Intel Xeon E5-2690 v4 under Ubuntu 18.04, with PyTorch, without a GPU (its appendix D).
"""

from __future__ import annotations

PLATFORM = "Intel Xeon E5-2690 v4, PyTorch, no GPU"

# Table 2: seconds until convergence, averaged over runs, by the names of our settings.
TRAINING_SECONDS = {
    "Mountain Car 100²": {"MCE-IRL": 4195.76, "NPL": 589.21, "CCP": 193.95},
    "Objectworld 16², C4": {"MCE-IRL": 32.21, "NPL": 4.18, "CCP": 2.40},
    "Objectworld 32², C2": {"MCE-IRL": 638.83, "NPL": 30.63, "CCP": 14.00},
    "Objectworld 32², C4": {"MCE-IRL": 471.64, "NPL": 29.85, "CCP": 11.19},
    "Objectworld 64², C4": {"MCE-IRL": 10699.47, "NPL": 340.55, "CCP": 103.79},
}
# Table 2, in brackets: so many times as fast as MCE-IRL.
TRAINING_SPEED_UPS = {
    "Mountain Car 100²": {"NPL": 7, "CCP": 22},
    "Objectworld 16², C4": {"NPL": 8, "CCP": 13},
    "Objectworld 32², C2": {"NPL": 21, "CCP": 46},
    "Objectworld 32², C4": {"NPL": 16, "CCP": 42},
    "Objectworld 64², C4": {"NPL": 31, "CCP": 103},
}

# Tables 5 and 6: a computation in the paper's words, and its seconds on either world, done once.
BREAKDOWN_SETTINGS = ("Mountain Car 100²", "Objectworld 64², C4")
OPTIMISATION_SECONDS = {
    "Occ. under expert policy π̂_E": (8.97, 1.72),
    "1. Optimal soft value and policy": (105.75, 2.91),
    "2. Occ. under optimal policy π_θ": (9.07, 2.13),
    "3. Exp. reward deriv. counts under π_θ": (0.01, 0.00),
    "4. Objective gradient": (0.03, 0.10),
    "Inner Loop Per-Step Totals": (114.86, 5.14),
}
APPROXIMATION_SECONDS = {
    "Occ. under expert policy π̂_E": (13.50, 2.69),
    "Occ. under policy π̃": (24.39, 2.11),
    "1. Soft value and policy": (0.11, 0.12),
    "2. Value derivatives": (1.36, 0.01),
    "3. Objective gradient": (0.37, 0.01),
    "Inner Loop Per-Step Totals": (1.84, 0.14),
}
