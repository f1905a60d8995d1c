"""Rewards r(s, a; θ): what is estimated. `base` states the protocol; `neural` and `torch` load their libraries late."""

from revealed.rewards.base import LiftedReward, LiftedWithJacobian, Reward, lift_reward
from revealed.rewards.linear import LinearReward
from revealed.rewards.tabular import TabularReward

__all__ = ["LiftedReward", "LiftedWithJacobian", "LinearReward", "Reward", "TabularReward", "lift_reward"]
