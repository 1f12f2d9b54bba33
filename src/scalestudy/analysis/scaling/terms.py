"""The terms that a training time is made of, and which of them a series may have.

T(n) = fixed + updates(n) * t_step(n). With a batch per worker and fixed epochs the updates fall as 1/n, and
an update takes compute + exchange(n); with one global batch the updates stay, and an update takes
compute/n + serial + exchange(n). Nothing is exchanged on one worker, so every exchange term is 0 there:

- one that does not grow: latency, a fixed share of the update that overlap does not hide;
- a ring's, 2 (n - 1)/n times the gradients' bytes over the bandwidth (Patarasuk and Yuan, "Bandwidth optimal
  all-reduce algorithms for clusters of workstations", J. Parallel and Distributed Computing 69, 2009);
- log2 n: trees, and waiting for the slowest of n (Thakur, Rabenseifner and Gropp, "Optimization of collective
  communication operations in MPICH", Int. J. High Performance Computing Applications 19, 2005);
- n - 1: what is done for each other worker in turn;
- one that begins with the second node.

Left out is what others add up to: updates of a batch per worker whose exchange is proportional to n - 1 take
(1 - 1/n) of a time, and a ring under one global batch likewise, so both have the form a + b/n.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Work = Literal["strong", "weak"]
Update = Literal["fixed", "growing"]


@dataclass(frozen=True)
class ScalingTerm:
    """One term: its name in files, how it is written after its number, and its shape in n.

    Attributes:
        name: "fixed", "compute", "constant", "ring", "log", "linear" or "second node".
        text: "" for a constant, "/n" for work that is shared.
        shape: Takes and returns [counts].
    """

    name: str
    text: str
    shape: "Callable[[Array], Array]"


def terms_of(work: Work, update: Update | None, full_node: int | None = None) -> tuple[ScalingTerm, ...]:
    """Terms that the times of a series may have, the one that all have first.

    Args:
        work: "strong" where every training processes as many samples, "weak" where these grow with n.
        update: "growing" with a batch per worker, which None is taken for, "fixed" with one global batch.
        full_node: Most workers of one node, where a term for the second node can be told; else None.
    """
    if work == "weak":
        compute = ScalingTerm("compute", "", lambda n: n**0)
        return compute, *_exchange(1 if update == "fixed" else 0, full_node, ring=True, linear=True)
    fixed = update == "fixed"
    return (
        ScalingTerm("compute", "/n", lambda n: 1 / n),
        ScalingTerm("fixed", "", lambda n: n**0),
        *_exchange(0 if fixed else -1, full_node, ring=not fixed, linear=fixed),
    )


def _exchange(power: int, full_node: int | None, *, ring: bool, linear: bool) -> tuple[ScalingTerm, ...]:
    """Terms of exchange where a training has n**power times the updates of one worker's."""
    many = {-1: "/n", 0: "", 1: " n"}[power]
    found = [ScalingTerm("constant", f"{many} for n ≥ 2", lambda n: (n >= 2) * n**power)]
    if ring:
        over = {-1: "/n²", 0: "/n", 1: ""}[power]
        found.append(ScalingTerm("ring", f" · 2(n − 1){over}", lambda n: 2 * (n - 1) * n ** (power - 1)))
    found.append(ScalingTerm("log", f" log₂(n){many}", lambda n: np.log2(n) * n**power))
    if linear:
        found.append(ScalingTerm("linear", f" (n − 1){many}", lambda n: (n - 1) * n**power))
    if full_node:
        found.append(
            ScalingTerm("second node", f"{many} for n > {full_node}", lambda n: (n > full_node) * n**power)
        )
    return tuple(found)
