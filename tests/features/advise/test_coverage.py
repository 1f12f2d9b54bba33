"""Coverage of predicted ranges, in simulations with a known truth and for real measurements."""

import importlib.util
import json
import sys
from math import exp, log
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest

import synthetic
from larger_studies import unet
from one_worker_runs import one, timed
from scalestudy.features.advise.network import Fabric, KnownNetwork, Link, TimedAllReduce, ring, route_of
from scalestudy.features.advise.step_model import StepModel, jitter_of, unmeasured_of
from scalestudy.measure.clock import StepTimes

STEPS = {
    "regular": lambda random, shape: 1 + 0.01 * random.standard_normal(shape),
    "log-normal": lambda random, shape: np.exp(0.3 * random.standard_normal(shape)),
    "gamma": lambda random, shape: 0.5 + random.gamma(2, 0.1, shape),
    "two kinds": lambda random, shape: 1 + 0.5 * (random.random(shape) < 0.1),
    "rare spikes": lambda random, shape: 1 + (random.random(shape) < 0.01) * random.exponential(1.0, shape),
    "heavy tail": lambda random, shape: 0.9 + 0.1 * random.pareto(2.5, shape),
}
"""Distributions of step times in seconds."""


def recorded(steps, random, epochs=5, calls=200, scale=0.05):
    """Return step times and epochs that a one-worker run records; the first epoch compiles."""
    times, spent = StepTimes(0), []
    for epoch in range(epochs + 1):
        seconds = scale * steps(random, calls)
        if epoch == 0:
            seconds[[0, -1]] += 3.0
        for call in seconds:
            times.add(1, float(call), 0.0)
        times.epoch_end(epoch + 1)
        spent.append(float(seconds.sum()))
    return times.record(), spent


@pytest.mark.parametrize("workers", [2, 64])
@pytest.mark.parametrize("name", STEPS)
def test_the_slowest_of_n_workers_lies_in_the_range_from_the_steps_of_one(name, workers):
    steps, random = STEPS[name], np.random.default_rng(0)
    longest = np.mean([steps(random, (2000, workers)).max(axis=1).mean() for _ in range(20)])
    truth = longest / np.mean([steps(random, 10**6).mean() for _ in range(5)]) - 1
    ranges = []
    for seed in range(40):
        record, _ = recorded(steps, np.random.default_rng(seed))
        found = jitter_of([record])
        ranges.append([found.slowest(workers) * end for end in (found.range.low, 1, found.range.high)])
    low, middle, high = np.array(ranges).T
    resolution = 0.005  # half of a histogram bin
    assert np.mean(truth < low - resolution) <= 0.15
    assert np.mean(truth > high + resolution) <= 0.15
    assert median(middle) == pytest.approx(truth, rel=0.15, abs=resolution)


def test_calls_that_a_device_takes_in_bursts_do_not_count_as_slow_steps():
    def bursts(random, calls):
        return np.where(np.arange(calls) % 10 == 9, 9.1, 0.1) + 0.001 * random.standard_normal(calls)

    record, _ = recorded(bursts, np.random.default_rng(0))
    found = jitter_of([record])
    assert found.damping < 0.1
    assert found.slowest(8) < 0.2
    shuffled, _ = recorded(
        lambda random, calls: random.permutation(bursts(random, calls)), np.random.default_rng(0)
    )
    assert jitter_of([shuffled]).damping < 0.1, "an epoch holds as many of them in any order"


def test_too_few_calls_tell_nothing_of_a_distribution():
    record, _ = recorded(STEPS["gamma"], np.random.default_rng(0), epochs=1, calls=5)
    assert jitter_of([record]) is None
    assert jitter_of([]) is None


def simulated(seed: int) -> tuple[float, list[float]]:
    """Draw a training by several workers from the assumptions; return its time and its prediction."""
    random = np.random.default_rng(seed)
    steps = STEPS[list(STEPS)[seed % len(STEPS)]]
    workers = int(random.choice([2, 4, 16]))
    assumed = unmeasured_of(gpu=False, xla=False, per_node=1)
    differences, overhead, longer = (
        random.uniform(known.low, known.high)
        for known in (assumed.differences, assumed.overhead, assumed.in_training)
    )
    link = Link(random.uniform(1e-5, 1e-3), 10 ** random.uniform(7.5, 9.5), random.uniform(0, 2e-3))
    known = KnownNetwork(
        tuple(
            TimedAllReduce(
                "ring",
                ranks,
                ranks,
                size,
                float(ring(size, ranks, Fabric(ranks, 1, link, link))) * exp(random.normal(0, 0.03)),
            )
            for ranks in (2, 4)
            for size in (1024, 2**20, 2**22)
        )
    )
    record, spent = recorded(steps, random, calls=160, scale=0.05 * exp(random.normal(0, 0.02)))
    run = timed(spent, batch=1, samples=160)
    name = run.result.name
    result = run.result.model_copy(update={"bucket_bytes": [2_000_000]})
    worker = one([synthetic.Run(result, run.epochs)], epochs=10, steps={name: record})
    route = route_of(known, ["ring"], near=2e6)
    predicted = StepModel(worker, route, assumed, draws=400).training(workers, per_node=1).seconds
    speeds = 1 + differences * random.standard_normal(workers)
    count = 10 * -(-160 // workers)
    slowest = (0.05 * steps(random, (count, workers)) * speeds).max(axis=1)
    mean = 0.05 * steps(random, 10**5).mean()
    exchange = longer * float(ring(2e6, workers, Fabric(workers, 1, link, link)))
    total = slowest.sum() + count * (overhead * np.log2(workers) * mean + exchange)
    return total * exp(random.normal(0, 0.02)) + worker.first_seconds, list(
        np.quantile(predicted, [0.025, 0.5, 0.975])
    )


@pytest.mark.slow
def test_simulated_trainings_lie_in_their_ranges_and_miss_them_to_either_side():
    found = [simulated(seed) for seed in range(240)]
    above = fmean(truth > high for truth, (_, _, high) in found)
    below = fmean(truth < low for truth, (low, _, _) in found)
    assert above + below <= 0.07
    assert above <= 0.05 and below <= 0.05
    assert abs(fmean(log(truth / middle) for truth, (_, middle, _) in found)) < 0.02


def shaped_links() -> list[tuple[float, float, float, float]]:
    """Return predicted low, median and high and the measured median (ms) of real workers on shaped links."""
    folder = Path(__file__).parents[3] / "benchmarks"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("estimate_benchmark", folder / "estimate.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    links = [
        json.loads(line) for line in Path(__file__).with_name("shaped_links.jsonl").read_text().splitlines()
    ]
    return [
        (*benchmark.estimated(link["strategy"], link["nodes"], run, run["buckets"][bucket]), median(times))
        for link in links
        for run in [link["found"]]
        for bucket, times in run["together"].items()
    ]


def published() -> list[tuple[float, float, float, float]]:
    """Return the same for the training times of the published U-Net."""
    columns = {"native": 0, "horovod": 3}
    return [
        (time.low, time.value, time.high, synthetic.U_NET[run.workers][columns[series.key.strategy]])
        for series in unet()
        for run in series.runs[1:]
        for time in [run.training_seconds]
    ]


def test_what_was_really_measured_lies_in_the_ranges_and_errors_are_to_both_sides():
    checks = [*published(), *shaped_links()]
    assert len(checks) >= 50
    assert fmean(low <= real <= high for low, _, high, real in checks) >= 0.95
    errors = [log(real / middle) for _, middle, _, real in checks]
    assert abs(fmean(errors)) < 0.03
    assert 0.3 < fmean(error > 0 for error in errors) < 0.7
