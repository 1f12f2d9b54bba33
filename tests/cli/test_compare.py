"""`scalestudy compare` and `recommend` on made studies, as a user calls them."""

import json
import sys
from pathlib import Path

import pytest

from scalestudy.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))

import made


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    made.write(folder / "before", "before", made.seeded((1, 2, 4), ("horovod",)))
    slow = [
        made.run("horovod", n, seed, throughput=80 * n * (1 + 0.002 * seed), epochs=12)
        for n in (1, 2, 4)
        for seed in range(3)
    ]
    made.write(folder / "after", "after", slow)
    return folder


def called(capsys, *arguments):
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code or 0, capsys.readouterr()


def test_a_slower_version_fails_a_pipeline(studies, capsys):
    pair = studies / "before", studies / "after"
    code, told = called(capsys, "compare", *pair, "--fail-if-slower", "5%", "--format", "csv")
    assert code == 1
    assert "Slower by more than 5%: horovod on 1 worker on after" in told.err
    assert told.out.startswith("strategy,workers,swept,quantity")
    assert called(capsys, "compare", *pair, "--fail-if-slower", "50%")[0] == 0


def test_studies_are_named_by_their_folders_or_by_the_user(studies, capsys):
    text = called(capsys, "compare", f"site A={studies / 'before'}", studies / "after")[1].out
    assert text.startswith("site A against after")


def test_a_comparison_is_written_in_the_form_of_its_ending(studies, tmp_path, capsys):
    page = tmp_path / "sites.md"
    code, told = called(capsys, "compare", studies / "before", studies / "after", "--out", page)
    assert code == 0 and f"Wrote {page}" in told.out
    assert "# before against after" in page.read_text()
    assert (tmp_path / "sites-figures" / "ratios.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["compare", "{before}"], "two studies or more"),
        (["compare", "a={before}", "a={after}"], "studies of different names"),
        (["compare", "{before}", "{after}", "--format", "pdf"], "a format out of"),
        (["compare", "{before}", "{after}", "--fail-if-slower", "5"], "a share as 5%"),
        (["compare", "{before}", "/nowhere"], "the results folder of a study"),
        (["recommend", "{before}", "--deadline", "soon"], "a time above 0"),
        (["recommend", "{before}", "--deadline", "2h", "--energy"], "one goal"),
        (["recommend", "{before}", "--efficiency", "70"], "an efficiency above 0"),
    ],
)
def test_wrong_input_is_refused_with_what_to_do(studies, capsys, arguments, expected):
    names = {name: studies / name for name in ("before", "after")}
    code, told = called(capsys, *(argument.format(**names) for argument in arguments))
    assert code == 2
    assert expected in told.err


def test_a_count_is_recommended_for_a_deadline(studies, capsys):
    text = called(capsys, "recommend", studies / "before", "--deadline", "2min")[1].out
    assert "Ask for horovod on" in text
    record = json.loads(
        called(capsys, "recommend", studies / "before", "--deadline", "2min", "--format", "json")[1].out
    )
    (found,) = record["recommended"]
    assert found["job_seconds"] <= 120
    assert record["goal"] == {"aim": "deadline", "value": 120.0, "charge": 1.0}


def test_two_counts_are_too_few_to_recommend_by(tmp_path, capsys):
    made.write(tmp_path / "two", "two", made.seeded((1, 2), ("horovod",)))
    code, told = called(capsys, "recommend", tmp_path / "two")
    assert code == 2
    assert "three numbers of workers or more" in told.err


def test_files_of_numbers_from_elsewhere_are_compared_by_what_they_know(tmp_path, capsys):
    head, tables = "strategy,workers,seed,seconds\n", {}
    for name, times in {
        "tf": {"native": 718, "horovod": 599},
        "torch": {"ddp": 634, "horovod": 1321},
    }.items():
        tables[name] = tmp_path / f"{name}.csv"
        tables[name].write_text(
            head + "".join(f"{s},14,{k},{t + k}\n" for s, t in times.items() for k in range(3))
        )
    text = called(capsys, "compare", f"TensorFlow={tables['tf']}", tables["torch"])[1].out
    assert "TensorFlow against torch" in text
    assert (
        "On 14 workers horovod is the fastest strategy of TensorFlow (1.20 times as fast as native)" in text
    )
    assert "the best strategy here is not the best there" in " ".join(text.split())
