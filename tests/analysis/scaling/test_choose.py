import made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from published import TABLES
from scalestudy.analysis.scaling.choose import choose, foretelling_error
from scalestudy.analysis.scaling.communication import COMMUNICATION

COUNTS = [1, 2, 4, 8, 16, 32]
SECONDS = st.floats(1, 1e5)
SHARE = st.floats(0.02, 1.0)


@given(SECONDS, SHARE)
@settings(max_examples=30)
def test_exact_times_of_amdahl_choose_amdahl_and_give_it_back(seconds, share):
    found = choose(COUNTS, [share * seconds + seconds / n for n in COUNTS])
    assert found.fit.law.name == "amdahl"
    assert found.fit.coefficients == pytest.approx([share * seconds, seconds], rel=1e-6)
    assert all(abs(each) < 1e-9 for each in found.fit.residuals.values())


@given(SECONDS, SHARE, st.floats(0.002, 0.1), st.floats(0.002, 0.1))
@settings(max_examples=30)
def test_exact_times_with_communication_choose_it_and_give_it_back(seconds, share, tree, ring):
    import math

    parts = [share * seconds, seconds, tree * seconds, ring * seconds]
    times = [parts[0] + parts[1] / n + parts[2] * math.log2(n) + parts[3] * n for n in COUNTS]
    found = choose(COUNTS, times)
    assert found.fit.law.name == "communication"
    assert found.fit.coefficients == pytest.approx(parts, rel=1e-4)


@given(SECONDS, st.floats(0.0, 0.9))
@settings(max_examples=30)
def test_exact_times_of_growing_work_give_gustafsons_law_back(seconds, share):
    found = choose(COUNTS, [seconds * n / (share + (1 - share) * n) for n in COUNTS], "weak")
    assert found.fit.law.name == "gustafson"
    first, each = found.fit.coefficients
    assert first / (first + each) == pytest.approx(share, abs=1e-6)
    assert found.fit.seconds(64) == pytest.approx(seconds * 64 / (share + (1 - share) * 64))


def test_below_five_counts_nothing_beyond_amdahl_is_tried():
    rising = [100 / n + 5 * n for n in (1, 2, 4, 8)]
    found = choose([1, 2, 4, 8], rising)
    assert [trial.law.name for trial in found.trials] == ["amdahl"]
    assert choose([1, 2, 4, 8, 16], [*rising, 100 / 16 + 80]).fit.law.name == "communication"


def test_below_three_counts_there_is_no_law():
    assert choose([1, 1, 2, 2], [10.0, 10.1, 6.0, 6.1]) is None


def test_times_that_are_no_times_have_no_law():
    assert choose([1, 2, 4], [10.0, 0.0, 3.0]) is None
    assert choose([1, 2, 4], [10.0, float("nan"), 3.0]) is None


def test_a_count_is_foretold_without_its_own_runs():
    # 8 workers lie off by 50 %: a law that had seen them would come closer.
    times = [100 / n for n in COUNTS]
    assert foretelling_error(COMMUNICATION, COUNTS, times) < 1e-9
    times[3] *= 1.5
    assert foretelling_error(COMMUNICATION, COUNTS, times) > 0.15


def test_noise_seldom_passes_for_communication():
    import random

    noise = random.Random(11)
    counts = [n for n in (1, 2, 4, 8, 16) for _ in range(3)]
    taken = 0
    for _ in range(60):
        times = [(10 + 90 / n) * noise.lognormvariate(0, 0.02) for n in counts]
        taken += choose(counts, times).fit.law.name == "communication"
    assert taken <= 10


def test_the_published_cassava_study_of_four_counts_follows_amdahl_within_3_per_cent_of_what_was_quoted():
    found = choose(list(made.CASSAVA), list(made.CASSAVA.values())).fit
    quoted = TABLES["cassava"]["quoted_law"]
    assert found.law.name == "amdahl"
    assert found.coefficients[1] == pytest.approx(quoted["parallel_seconds"], rel=0.005)
    for count in made.CASSAVA:
        assert found.seconds(count) == pytest.approx(
            quoted["serial_seconds"] + quoted["parallel_seconds"] / count, rel=0.03
        )


def test_of_the_published_u_net_native_loses_more_to_serial_time_than_horovod():
    counts = list(made.U_NET)
    native = choose(counts, [row[0] for row in made.U_NET.values()])
    horovod = choose(counts, [row[3] for row in made.U_NET.values()])
    assert native.fit.law.name == horovod.fit.law.name == "amdahl"

    def share(choice):
        return choice.fit.coefficients[0] / sum(choice.fit.coefficients)

    assert share(horovod) < 0.01
    assert 2 * share(horovod) < share(native) < 0.03
