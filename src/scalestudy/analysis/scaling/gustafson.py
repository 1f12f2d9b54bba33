"""Gustafson's law, for work that grows with the workers (weak scaling): S(n) = f + (1 - f) n.

S(n) is the scaled speed-up: the work of n workers per second over that of one, n T(1) / T(n) with n times
the work in T(n). So n / T(n) = (f + (1 - f) n) / T(1) is linear in n, and is fitted in that form.
Gustafson, "Reevaluating Amdahl's law", Communications of the ACM 31 (1988).
"""

from scalestudy.analysis.scaling.law import Law, Term

GUSTAFSON = Law(
    "gustafson",
    "Gustafson's law",
    (
        Term("", lambda n: n**0, "work of one worker alone, per second"),
        Term(" n", lambda n: n, "work of each worker, per second"),
    ),
    "Gustafson 1988",
    reciprocal=True,
)
