"""Cost of recording the step times of every rank: the ratio of epochs with and without it.

`.venv/bin/python benchmarks/step_times.py [--pairs 40]`. One process trains the published CNN on handwritten
digits with the real loop, alternating epochs with and without recording in changing order, so that a drift of
the machine's speed affects both. Ratios are taken within a pair, and the result is the median over the pairs.
It also times the recording of one call alone, in thread seconds, relative to the shortest call of these
epochs, because noise of a shared machine hides a cost that small. The claim is below 1 %.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.config.catalog import task_defaults
from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings, ResolvedData, ResolvedLaunch, TrainSettings
from scalestudy.data.split import ensure_split
from scalestudy.data.store.preparation import prepare
from scalestudy.engines.group import join
from scalestudy.engines.interface import engine_of
from scalestudy.hardware import cores
from scalestudy.measure.clock import PhaseClock, StepTimes, quantile
from scalestudy.training.session import Session
from scalestudy.training.timers import EpochCounters

CLAIM = 1.01
CALLS = 200_000


class Without(StepTimes):
    """Record nothing."""

    def add(self, steps: int, seconds: float, waited: float) -> None:
        """Do nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        session = session_of(Path(folder), 2 * options.pairs + 2, options.batch)
        session.compile()
        kept, ratios = StepTimes(0), []
        kinds: list[StepTimes] = [kept, Without(0)]
        epochs = session.epoch_records()

        def seconds(kind: StepTimes) -> float:
            session.step_times, session._tally = kind, EpochCounters(times=kind)
            return next(epochs).train_seconds

        for kind in kinds:
            seconds(kind)  # the first epochs warm up
        for pair in range(options.pairs):
            order = kinds if pair % 2 == 0 else kinds[::-1]
            found = {id(kind): seconds(kind) for kind in order}
            ratios.append(found[id(kinds[0])] / found[id(kinds[1])])
    shortest = quantile(kept.record().calls, 0.01)
    each = account()
    ends = f"[{min(ratios):.3f}, {max(ratios):.3f}]"
    middle = sorted(ratios)[len(ratios) // 4 : -len(ratios) // 4]
    print(
        f"with / without: median {statistics.median(ratios):.4f}, middle half up to {middle[-1]:.4f} {ends}"
    )
    share = each / shortest
    print(f"a call's account: {1e6 * each:.2f} µs, {100 * share:.4f} % of a call of {1e3 * shortest:.2f} ms")
    print(f"claim, less than 1 %: {'holds' if 1 + share < CLAIM else 'does not hold'} by the account")


def account() -> float:
    """Seconds to record one call."""
    times, best = StepTimes(0), float("inf")
    for _ in range(5):
        start = time.thread_time()
        for index in range(CALLS):
            times.add(8, 0.001 + 1e-8 * index, 1e-5)
        best = min(best, (time.thread_time() - start) / CALLS)
    return best


def session_of(folder: Path, epochs: int, batch: int) -> Session:
    """Build the session of a real run with one worker."""
    prepared = prepare(DataSettings(source="digits", cache=str(folder)))
    split = ensure_split(prepared, None, 0)
    settings = TrainSettings(epochs=epochs, batch_size=batch, steps_per_call=1, evaluate_every=epochs)
    train = task_defaults("cnn").complete_train(settings)
    point = Point(
        name="step-times",
        study="step-times",
        task="cnn",
        strategy="single",
        workers=1,
        seed=0,
        data=ResolvedData(source="digits"),
        train=train,
        terms={"implementation": "single", "launch": ResolvedLaunch()},
    )
    engine = engine_of(point.engine)
    engine.set_up(point, threads=len(cores.granted()), device="cpu")
    placement = Placement(0, 1, 0, 1, 0, ("localhost",), "alone")
    joined = join("single", placement, workers=1, device="cpu")
    return Session(point, engine, joined, prepared, split, PhaseClock())


if __name__ == "__main__":
    main()
