"""How the settings of an optimizer follow the batch."""

import math
from typing import NamedTuple


class Averages(NamedTuple):
    """The decay rates of an adaptive optimizer's averages, and its epsilon."""

    beta_1: float
    beta_2: float
    epsilon: float


def scaled_averages(averages: Averages, kappa: float) -> Averages:
    """Return the averages for `kappa` reference batches, so that they span as many samples as before.

    A sample's weight falls by β over a reference batch, so by β^κ over κ of them (Marek et al. 2025,
    arXiv:2507.07101, for β₂). To first order in 1 − β this is 1 − κ(1 − β), the rule of Malladi et al. 2022
    (arXiv:2205.10287), which has no positive β₁ from κ = 10 on; ε/√κ is theirs.
    """
    beta_1, beta_2, epsilon = averages
    return Averages(beta_1**kappa, beta_2**kappa, epsilon / math.sqrt(kappa))
