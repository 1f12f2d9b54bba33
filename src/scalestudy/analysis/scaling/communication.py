"""Communication that grows with the workers: T(n) = a + b/n + c log2 n + d n.

b is work that is shared out, a what is not; c stands for exchange by trees (broadcast, latency of a
reduction), d for what is done for each worker in turn (rings' latency, a server, start of collectives).
Terms of this form: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
MPICH", Int. J. High Performance Computing Applications 19 (2005); Calotoiu et al., "Using automated
performance modeling to find scalability bugs in complex codes", SC13 (2013).
"""

from typing import TYPE_CHECKING

from scalestudy.analysis.scaling.law import CONSTANT, SHARED, Law, Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _log2(n: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    return np.log2(n)


COMMUNICATION = Law(
    "communication",
    "a law with communication",
    (
        CONSTANT,
        SHARED,
        Term(" log2 n", _log2, "exchange by trees"),
        Term(" n", lambda n: n, "exchange with each worker in turn"),
    ),
    "Thakur, Rabenseifner and Gropp 2005",
)
