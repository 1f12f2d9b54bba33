"""Times and sizes are written and read in the same way everywhere."""

import pytest

from scalestudy.util import units

SHOWN = {
    units.duration: {
        0: "0.00 s",
        0.05: "0.05 s",
        0.5: "0.50 s",
        0.999: "1.0 s",
        1.24: "1.2 s",
        9.96: "10 s",
        41.32: "41 s",
        59.7: "1:00 min",
        125: "2:05 min",
        3599.6: "1:00:00 h",
        3725: "1:02:05 h",
        72000: "20:00:00 h",
    },
    units.size: {
        0: "0 B",
        512: "512 B",
        1024: "1 KiB",
        1.5 * 2**20: "1.5 MiB",
        376.25 * 2**30: "376 GiB",
        1007 * 2**20: "1007 MiB",
        2 * 2**40: "2048 GiB",
    },
    units.cost: {
        0: "0 h",
        1234.5: "1,234 h",
        99.96: "100 h",
        45.71: "45.7 h",
        0.99999: "1.00 h",
        0.5: "30.0 min",
        0.00829: "29.8 s",
        1 / 60: "1.00 min",
        1e-6: "0.00360 s",
    },
}
READ = {
    units.bytes_of: {"1 KiB": 1024, "32 MiB": 2**25, "2 GiB": 2**31},
    units.seconds_of: {
        "90 s": 90,
        "90min": 5400,
        "30m": 1800,
        "2.5h": 9000,
        "1d": 86400,
        " 2h ": 7200,
        "1h30m": 5400,
        "1 d 12 h": 129600,
        "1h 30min 5s": 5405,
    },
}
REFUSED = {
    units.bytes_of: [
        "",
        "32",
        "0 MiB",
        "32MiB",
        "1.5 MiB",
        "-1 MiB",
        "32 MB",
        "3 2 MiB",
        "32 MiB\n",
    ],
    units.seconds_of: [
        "",
        "2",
        "h",
        "0h",
        "-1h",
        "1e9h",
        "2 hours",
        "1:30",
        "2h30",
        "30m1h",
        "1m1min",
        "100Gbit",
        "١h",
    ],
}


@pytest.mark.parametrize("show", SHOWN, ids=lambda function: function.__name__)
def test_numbers_are_shown_in_what_reads_well(show):
    assert {value: show(value) for value in SHOWN[show]} == SHOWN[show]


@pytest.mark.parametrize("read", READ, ids=lambda function: function.__name__)
def test_texts_are_read_in_their_units(read):
    assert {text: read(text) for text in READ[read]} == pytest.approx(READ[read])


@pytest.mark.parametrize(
    ("read", "text"),
    [(read, text) for read, texts in REFUSED.items() for text in texts],
)
def test_other_texts_are_refused_with_one_that_would_do(read, text):
    with pytest.raises(ValueError, match=r'as "\d'):
        read(text)


def test_a_written_size_is_read_as_it_is_shown():
    assert [units.size(units.bytes_of(text)) for text in READ[units.bytes_of]] == list(
        READ[units.bytes_of]
    )


def test_a_cost_may_name_what_is_paid_for_and_quantities_have_decimal_prefixes():
    assert units.cost(4.571, "worker") == "4.57 worker-hours"
    assert units.cost(0.00829, "worker") == "29.8 worker-seconds"
    assert units.cost(0.0136, "worker", beside=0.0195) == "0.816 worker-minutes"
    assert units.cost(0.0195, "worker", beside=0.0136) == "1.17 worker-minutes"
    shown = {
        0: "0 FLOP",
        7: "7.00 FLOP",
        999.9: "1.00 kFLOP",
        2_015_232: "2.02 MFLOP",
        9.895e14: "990 TFLOP",
    }
    assert {value: units.format_scaled(value, "FLOP") for value in shown} == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.05, "0.05"),
        (12.14, "12.1"),
        (999.4, "999"),
        (999.6, "1,000"),
        (1013, "1,013"),
        (1e6, "1,000,000"),
    ],
)
def test_a_number_is_written_with_three_digits_and_never_as_a_power_of_ten(value, text):
    assert units.three_digits(value) == text
