import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.training.rates import peak_rate, rate_table

PLAIN = {
    "base": 0.1,
    "kappa": 1.0,
    "scaling": "none",
    "schedule": "constant",
    "steps": 200,
    "warmup": 0,
}


def table(**changes):
    return rate_table(**{**PLAIN, **changes})


@pytest.mark.parametrize(
    ("scaling", "peak"), [("none", 0.1), ("linear", 1.6), ("sqrt", 0.4)]
)
def test_scaling_multiplies_by_nothing_k_or_its_root(scaling, peak):
    assert peak_rate(0.1, 16, scaling) == pytest.approx(peak)


def test_without_scaling_warmup_or_schedule_the_rate_is_constant():
    assert np.all(table() == 0.1)


def test_the_warmup_rises_from_the_unscaled_rate_to_the_scaled_one():
    rates = table(kappa=4.0, scaling="linear", warmup=10)
    assert rates[0] == pytest.approx(0.1 + 0.3 / 10)
    assert rates[9] == pytest.approx(0.4)
    assert np.all(np.diff(rates[:10]) > 0)


def test_without_scaling_the_warmup_rises_from_zero():
    assert table(warmup=4)[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])


def test_the_published_steps_halve_at_40_60_and_75_per_cent():
    rates = table(schedule="steps")
    assert rates[[79, 80, 119, 120, 149, 150, 199]] == pytest.approx(
        [0.1, 0.05, 0.05, 0.025, 0.025, 0.0125, 0.0125]
    )


@given(
    st.sampled_from(["constant", "steps", "linear", "cosine"]),
    st.sampled_from(["none", "linear", "sqrt"]),
    st.integers(1, 300),
    st.integers(0, 300),
    st.floats(0.5, 64),
)
def test_rates_are_positive_in_number_and_never_above_the_peak(
    schedule, scaling, steps, warmup, kappa
):
    rates = table(
        schedule=schedule,
        scaling=scaling,
        steps=steps,
        warmup=min(warmup, steps),
        kappa=kappa,
    )
    assert rates.shape == (steps,)
    assert np.all(rates >= 0)
    assert np.all(rates <= max(peak_rate(0.1, kappa, scaling), 0.0) * (1 + 1e-12))


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_linear_and_cosine_fall_from_the_peak_towards_zero(schedule):
    rates = table(schedule=schedule)
    assert rates[0] == pytest.approx(0.1)
    assert np.all(np.diff(rates) <= 0)
    assert rates[-1] < 0.001
