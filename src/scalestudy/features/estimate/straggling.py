"""The slowest of n workers, whom all others wait for in every step.

The expected maximum of n independent normal values grows like √(2 ln n) standard deviations (Fisher and
Tippett 1928); Blom's formula ("Statistical Estimates and Transformed Beta-Variables", 1958) is
within 0.03 of it.
"""


def expected_maximum(count: int) -> float:
    """Of so many independent standard normal values; 0 for one."""
    from scipy.special import ndtri

    return 0.0 if count < 2 else float(ndtri((count - 0.375) / (count + 0.25)))
