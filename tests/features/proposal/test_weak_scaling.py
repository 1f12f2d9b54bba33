"""Weak scaling in a proposal: of rows whose batch grows with the workers, or named as missing."""

import pytest

import panels
import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.features.proposal.panel import find_panel
from scalestudy.features.proposal.proposal_page import compose
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.features.proposal.weak_scaling import weak_scaling


def study(rates, *, batch):
    """Three seeds of one strategy with these throughputs, by number of workers."""
    runs = []
    for n, rate in rates.items():
        for seed in range(3):
            run = synthetic.run("native", n, seed, throughput=rate * (1 + 0.001 * seed))
            runs.append(synthetic.changed(run, global_batch=batch(n)))
    return analyse("made", runs, synthetic.plan(runs))


def test_a_worker_keeps_the_share_of_its_throughput_that_the_rates_say():
    findings = study({1: 100, 2: 190, 4: 340}, batch=lambda n: 16 * n)
    points = weak_scaling(panels.subject(findings))
    assert [(point.workers, point.global_batch) for point in points] == [
        (1, 16),
        (2, 32),
        (4, 64),
    ]
    assert [point.efficiency.value for point in points] == pytest.approx(
        [1.0, 0.95, 0.85]
    )


def test_a_global_batch_is_strong_scaling_and_the_other_is_named_as_missing():
    findings = study({1: 100, 2: 190}, batch=lambda n: 16)
    assert weak_scaling(panels.subject(findings)) == []
    page = compose(findings, find_panel("generic"), RequestOptions())
    assert "Weak-scaling efficiency" in [gap.asks for gap in page.gaps]
