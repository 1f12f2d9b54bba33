"""`scalestudy compare` on synthetic studies, as users call it."""

import json

import pytest

import synthetic


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    synthetic.write(
        folder / "before", "before", synthetic.seeded((1, 2, 4), ("horovod",))
    )
    slow = [
        synthetic.run(
            "horovod", n, seed, throughput=80 * n * (1 + 0.002 * seed), epochs=12
        )
        for n in (1, 2, 4)
        for seed in range(3)
    ]
    synthetic.write(folder / "after", "after", slow)
    return folder


def test_a_slower_version_is_told_to_programs(call, studies):
    rows = json.loads(
        call("compare", studies / "before", studies / "after", "--format", "json")[1]
    )["rows"]
    assert {row["verdict"] for row in rows if row["quantity"] == "rate"} == {"slower"}


def test_studies_are_named_by_their_folders_or_their_paths(call, studies, monkeypatch):
    monkeypatch.chdir(studies)
    assert call("compare", "before", "after")[1].startswith("before against after")
    assert call("compare", "before", "./before/")[1].startswith("before against before")


def test_a_comparison_is_written_in_the_form_of_its_ending(call, studies, tmp_path):
    page = tmp_path / "sites.md"
    code, _, errors = call(
        "compare", studies / "before", studies / "after", "--out", page
    )
    assert code == 0 and f"Wrote {page}" in errors
    assert "# before against after" in page.read_text()


def test_an_edited_task_is_named_and_its_qualities_are_not_paired(call, tmp_path):
    runs = synthetic.seeded((1, 2), ("horovod",))
    for name, digest in (("before", "a" * 64), ("after", "b" * 64)):
        folder = synthetic.write(tmp_path / name, name, runs).path
        study = json.loads((folder / "study.json").read_text())
        for point in study["points"]:
            point["sources"] = {"own.py": digest}
        (folder / "study.json").write_text(json.dumps(study))
    call(
        "compare",
        tmp_path / "before",
        tmp_path / "after",
        "--out",
        tmp_path / "page.md",
    )
    text = (tmp_path / "page.md").read_text()
    assert "not alike are task: own.py" in text
    assert "a" * 12 in text and "b" * 12 in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["compare", "{before}"], "STUDY"),
        (["compare", "{before}", "{after}", "--format", "pdf"], "one of the formats"),
        (["compare", "{before}", "/nowhere"], "/nowhere"),
    ],
)
def test_wrong_input_is_refused_with_what_to_do(call, studies, arguments, expected):
    names = {name: studies / name for name in ("before", "after")}
    code, _, errors = call(*(argument.format(**names) for argument in arguments))
    assert code == 2
    assert expected in errors
