"""Group-sequential tests of quality: seeds are added until a verdict stands, at a stated chance of error.

Testing at 2.5 % after every seed calls a worse model no worse in up to 9 % of studies. With alpha spending
(Lan and DeMets, Biometrika 70, 1983; here as Pocock's boundary) each look has a smaller level of its own, and
all looks together stay below `ALPHA`. The levels are applied to Student's t (Jennison and Turnbull, "Group
sequential methods", 2000, chapter 4.4). They depend only on the number of seeds, so a report reaches the
verdict of the run that ended. A row that will hardly be shown to be no worse gets no more seeds; such a rule
never adds a false "no worse". If the spread of seeds asks for more of them than can be paid, this is known at
the first look (`seeds_needed`).

A grid has as many seeds as its user planned, and is looked at with that number. If seeds are added later, the
verdict is another look. Their number has no limit, so that k seeds spend k / (k + 1) of `ALPHA` in all, which
also leaves a part for later. Each run records how many seeds were planned when it was started.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil, e, log1p, sqrt

from scalestudy.analysis.estimate import Contrast, Estimate
from scalestudy.analysis.measures import Measure
from scalestudy.analysis.runs import Key
from scalestudy.analysis.statistics import contrast
from scalestudy.config.metric_senses import Better, gain

ALPHA = 0.025
"""Chance of calling a row no worse whose quality is worse by exactly the margin."""
LOOKS = (3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26)
"""Numbers of seeds after which rows are judged."""
FEWEST = 2
"""Seeds after which a row may be given up, before the first look."""
PAIRED_FROM = 5
"""Seeds from which rows are compared within seeds, too; fewer have too few degrees of freedom."""
PAIRED = 0.12
"""Share of a look's level for the comparison within seeds. The rest is for the unpaired one, which needs
fewer seeds if runs of one seed are no more alike than others. Either may show a row no worse."""
LOSES = 0.01
"""P value of no loss at all below which a row that gets no more seeds counts as worse; above, it is merely
not shown to be as good. So few studies without a loss settle on a slower row."""
POWER = 0.8
"""Chance of a verdict with the number of seeds that is called needed, for a row that loses nothing."""
FUTILE = 0.06
"""Chance of being shown no worse, after the last look, below which a row gets no more seeds."""


@dataclass(frozen=True)
class Look:
    """A row's quality compared with the reference's at one look.

    Attributes:
        change: Quality minus the reference's, with the interval at the level of the look.
        seeds: Seeds of the row or the reference, whichever has fewer.
        power: Chance that the row is shown no worse by the last look if the truth is as measured; None if
            the spread is unknown.
        no_loss: One-sided P value of no loss; None if the spread is unknown.
        needed: Seeds that would show a row no worse that loses nothing; None if the spread is unknown.
    """

    change: Estimate
    seeds: int
    power: float | None
    no_loss: float | None = None
    needed: int | None = None

    @property
    def futile(self) -> bool:
        """Whether more seeds would hardly show the row to be no worse."""
        return self.power is not None and self.power < FUTILE

    @property
    def loses(self) -> bool:
        """Whether it is shown to be lower than the reference, by however little."""
        return self.no_loss is not None and self.no_loss < LOSES


def compare_sequentially(
    quality: Measure,
    key: Key,
    reference: Key,
    margin: float,
    better: Better,
) -> Look:
    """Compare two rows by the runs of both; `margin` is the accepted loss of quality."""
    ours = quality.values[key]
    theirs = quality.values[reference]
    seeds = min(len(ours), len(theirs))
    within = quality.contrast(key, reference)
    # A row has no runs, or one that ended without a finite quality.
    if within is None:
        return Look(Estimate(None), seeds, None)
    # Other names of the blocks keep the two rows from being paired.
    unpaired = {}
    for block, value in theirs.items():
        unpaired["reference", block] = value
    among = contrast(
        ours,
        unpaired,
        quality.of_differences[key],
        quality.of_differences[reference],
    )
    # One seed has no spread, and the common one is that of other rows.
    if seeds < FEWEST:
        return Look(Estimate(among.change), seeds, None)
    level = level_at(seeds)
    ways = [(among, level)]
    if seeds >= PAIRED_FROM:
        # Both comparisons may show a row no worse, so they share the level (Bonferroni).
        paired_level = PAIRED * level
        unpaired_level = (1 - PAIRED) * level
        ways = [(within, paired_level), (among, unpaired_level)]
    lows, highs = [], []
    for change, its_level in ways:
        interval = _interval(change, its_level)
        if interval.low is not None and interval.high is not None:
            lows.append(interval.low)
            highs.append(interval.high)
    if not lows:
        return Look(Estimate(among.change), seeds, None)
    low = max(lows)
    high = min(highs)
    # The one with the smaller error is what will show a row no worse, if any does.
    sharper, its_level = min(ways, key=lambda way: way[0].error or 0.0)
    power = _predictive_power(sharper, its_level, seeds, margin, better)
    no_loss = _no_loss(sharper, better)
    if low > high:  # the two comparisons contradict each other
        low = min(lows)
        high = max(highs)
    # Before the first look nothing of the level is spent, so there is no interval, but a row may be given up.
    if seeds < LOOKS[0]:
        return Look(Estimate(among.change), seeds, power, no_loss)
    # The estimate of one comparison may lie outside the interval of the other.
    middle = min(max(among.change, low), high)
    spread = (sharper.error or 0.0) * sqrt(seeds)
    needed = seeds_needed(spread, margin)
    return Look(Estimate(middle, low, high), seeds, power, no_loss, needed)


def seeds_needed(spread: float, margin: float) -> int:
    """Seeds of both rows that show a row no worse if it loses nothing, with a chance of `POWER`.

    Args:
        spread: Standard deviation of the difference of the two rows under one seed.
        margin: Accepted loss of quality, in the same unit; positive.
    """
    from scipy.special import ndtri

    chance = float(ndtri(POWER))

    def enough(seeds: int) -> float:
        """Seeds that a normal test at the level of this look takes."""
        level = float(ndtri(level_at(seeds)))
        return ((chance - level) * spread / margin) ** 2

    # The level of a look depends on its number of seeds, so that the number cannot be solved for.
    for look in LOOKS:
        if look >= enough(look):
            return look
    # More seeds than the last look has are judged at its level.
    beyond = ceil(enough(LOOKS[-1]))
    return max(LOOKS[-1], beyond)


def compare_grid(
    quality: Measure,
    key: Key,
    reference: Key,
    looks: Sequence[int],
    margin: float,
) -> tuple[Estimate, int | None]:
    """Quality minus the reference's, with the interval at the level of this look.

    Args:
        quality: The qualities of all rows.
        key: The row that is judged.
        reference: The row that it is compared with.
        looks: Numbers of seeds that the study has had; those up to the present number were looked at.
        margin: Accepted loss of quality, in the metric's unit.

    Returns:
        The difference, and how many seeds of both rows would show a row no worse that loses nothing, by the
        spread seen so far; None if the spread or the margin is unknown.
    """
    found = quality.contrast(key, reference)
    if found is None:
        return Estimate(None), None
    ours = len(quality.values[key])
    theirs = len(quality.values[reference])
    seeds = max(FEWEST, min(ours, theirs))
    earlier = []
    for look in sorted(set(looks)):
        if FEWEST <= look < seeds:
            earlier.append(look)
    # What was planned below the present number was looked at; looks in between are not recorded.
    change = _interval(found, grid_level((*earlier, seeds)))
    if found.error is None or margin <= 0:
        return change, None
    spread = found.error * sqrt(seeds)
    return change, seeds_needed(spread, margin)


@cache
def grid_level(looks: tuple[int, ...]) -> float:
    """One-sided level of the last of a grid's looks, given as rising numbers of seeds."""

    def spent_at(seeds: int) -> float:
        # There is no last look to plan for: k / (k + 1) always leaves a part for another one.
        return ALPHA * seeds / (seeds + 1)

    return _levels(looks, spent_at)[looks[-1]]


def _interval(change: Contrast, level: float) -> Estimate:
    from scipy.special import stdtrit

    if change.error is None or change.freedom <= 0:
        return Estimate(change.change)
    quantile = float(stdtrit(change.freedom, 1 - level))
    reach = quantile * change.error
    low = change.change - reach
    high = change.change + reach
    return Estimate(change.change, low, high)


def _no_loss(change: Contrast, better: Better) -> float | None:
    """One-sided P value of Student's test that nothing is lost."""
    p_value = change.p_value
    if p_value is None:
        return None
    # Half of the two-sided value lies on each side of 0.
    if gain(change.change, better) < 0:
        return p_value / 2
    return 1 - p_value / 2


def _predictive_power(
    change: Contrast,
    level: float,
    seeds: int,
    margin: float,
    better: Better,
) -> float | None:
    """Predictive chance of the verdict "no worse" at the last look (Spiegelhalter et al. 1986).

    The estimate at the last look is normal about today's, with the variance that the seeds until then take
    away. It has to lie above the boundary of that look.
    """
    from scipy.special import ndtr, ndtri

    if change.error is None:
        return None
    # How far the row is from being worse by exactly the margin.
    distance = gain(change.change, better) + margin
    # There is no later look, or no spread by which it could differ.
    if seeds >= LOOKS[-1] or change.error == 0:
        return float(distance > 0)
    last_error = change.error * sqrt(seeds / LOOKS[-1])
    # The comparison keeps its share of the level, see `PAIRED`.
    last_level = level * level_at(LOOKS[-1]) / level_at(seeds)
    needed = -float(ndtri(last_level)) * last_error
    # What the estimate will still move by until then.
    spread = sqrt(change.error**2 - last_error**2)
    return float(ndtr((distance - needed) / spread))


def level_at(seeds: int) -> float:
    """One-sided level of the last look at or before a number of seeds."""
    last = LOOKS[0]
    for look in LOOKS:
        if look <= seeds:
            last = look
    return levels()[last]


@cache
def levels() -> dict[int, float]:
    """One-sided level of the test at each look of a study that runs until it is decided."""

    def spent_at(seeds: int) -> float:
        """The spending function of Lan and DeMets that is close to Pocock's boundary."""
        return ALPHA * log1p((e - 1) * seeds / LOOKS[-1])

    return _levels(LOOKS, spent_at)


def _levels(
    looks: Sequence[int],
    spent_at: Callable[[int], float],
) -> dict[int, float]:
    """One-sided level at each look, by recursive integration (Armitage et al., JRSS A 132, 1969).

    The density of the sum that has not crossed a boundary yet is carried from look to look on a grid.
    """
    import numpy as np
    from scipy.special import ndtr

    # Sums of standard normal values: after k seeds their variance is k. Nine standard deviations of the last
    # look lose less than rounding does.
    deviations = np.linspace(-9.0, 9.0, 1801)
    grid = deviations * sqrt(looks[-1])
    width = float(grid[1] - grid[0])
    exponent = -(grid**2) / looks[0] / 2
    total = sqrt(2 * np.pi * looks[0])
    density = np.exp(exponent) / total
    levels: dict[int, float] = {}
    spent = 0.0
    for before, look in pairwise((looks[0], *looks)):
        if look > before:
            # The seeds since the last look add a normal value with their number as its variance.
            steps = np.arange(-600, 601) * width
            exponent = -(steps**2) / (look - before) / 2
            kernel = np.exp(exponent)
            density = np.convolve(density, kernel / kernel.sum(), "same")
        due = spent_at(look) - spent
        # The boundary has what is due of this look above it; linear between two points of the grid.
        from_above = np.cumsum(density[::-1])
        tail = from_above[::-1] * width
        place = int(np.searchsorted(-tail, -due))
        above = tail[place]
        below = tail[place - 1]
        part = (due - above) / (below - above)
        edge = float(grid[place] - width * part)
        levels[look] = float(ndtr(-edge / sqrt(look)))
        # Studies beyond the boundary have ended, and take no part in later looks.
        density = np.where(grid < edge, density, 0.0)
        spent += due
    return levels
