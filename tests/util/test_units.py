"""Times and sizes read the same wherever they stand."""

import pytest

from scalestudy.util import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"), (0.05, "0.05 s"), (0.5, "0.50 s"), (0.999, "1.0 s"), (1.24, "1.2 s"), (9.96, "10 s"),
        (41.32, "41 s"), (42, "42 s"), (59.7, "1:00 min"), (125, "2:05 min"), (750, "12:30 min"),
        (3599.6, "1:00:00 h"), (3725, "1:02:05 h"), (72000, "20:00:00 h"),
    ],
)  # fmt: skip
def test_durations_read_well(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (512, "512 B"), (1024, "1 KiB"), (2**20, "1 MiB"), (3 * 2**30, "3 GiB"),
        (1.5 * 2**20, "1.5 MiB"),
        (376.25 * 2**30, "376 GiB"), (1007 * 2**20, "1007 MiB"), (2 * 2**40, "2048 GiB"),
    ],
)  # fmt: skip
def test_sizes_have_three_digits_and_a_binary_unit(count: float, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize(("text", "count"), [("1 KiB", 1024), ("32 MiB", 2**25), ("2 GiB", 2**31)])
def test_a_written_size_is_read_as_it_is_shown(text: str, count: int) -> None:
    assert units.bytes_of(text) == count
    assert units.size(count) == text


@pytest.mark.parametrize(
    "text", ["", "32", "0 MiB", "32MiB", "1.5 MiB", "-1 MiB", "32 MB", "3 2 MiB", "32 MiB\n"]
)
def test_what_is_no_size_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"32 MiB.*KiB, MiB, GiB"):
        units.bytes_of(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("100Gbit", 12.5e9), ("25 GB", 25e9), ("500Mbit/s", 62.5e6), ("1.5GiB", 1.5 * 2**30)],
)
def test_a_bandwidth_is_bytes_per_second_of_bits_or_bytes(text, value):
    assert units.bandwidth_of(text) == value


@pytest.mark.parametrize(("text", "value"), [("2us", 2e-6), ("2 µs", 2e-6), ("0.5ms", 5e-4), ("1s", 1.0)])
def test_a_latency_is_seconds(text, value):
    assert units.latency_of(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["100", "Gbit", "0Gbit", "-1Gbit", "1e9Gbit", "2us", "100 gigabit", "١Gbit"])
def test_another_text_is_no_bandwidth_and_says_what_would_be(text):
    with pytest.raises(ValueError, match="100Gbit"):
        units.bandwidth_of(text)


def test_a_bandwidth_is_no_latency():
    with pytest.raises(ValueError, match="2us"):
        units.latency_of("100Gbit")


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0, "0 h"), (1234.5, "1,234 h"), (99.96, "100 h"), (45.71, "45.7 h"), (1, "1.00 h"),
        (0.99999, "1.00 h"), (0.5, "30.0 min"), (0.00829, "29.8 s"), (1 / 60, "1.00 min"),
        (1e-6, "0.00360 s"),
    ],
)  # fmt: skip
def test_a_small_cost_is_in_minutes_or_seconds(hours, text):
    assert units.cost(hours) == text


def test_a_cost_may_name_what_is_paid_for():
    assert units.cost(4.571, "worker") == "4.57 worker-hours"
    assert units.cost(0.00829, "worker") == "29.8 worker-seconds"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 FLOP"),
        (7, "7.00 FLOP"),
        (999.9, "1.00 kFLOP"),
        (2_015_232, "2.02 MFLOP"),
        (9.895e14, "990 TFLOP"),
    ],
)
def test_quantities_have_decimal_prefixes(value, text):
    assert units.scaled(value, "FLOP") == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90 s", 90), ("90min", 5400), ("2.5h", 9000), ("1d", 86400), (" 2h ", 7200)]
)
def test_times_are_read_in_their_units(text, seconds):
    assert units.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "0h", "-1h", "2 hours", "1:30", "2h30"])
def test_what_is_no_time_says_what_would_do(text):
    with pytest.raises(ValueError, match="90min"):
        units.seconds_of(text)
