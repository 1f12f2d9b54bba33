import math
import os
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.differences import differences
from scalestudy.config.file import Study, study_toml
from scalestudy.config.parse import load_study, parse_study
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.util.errors import UserError


@pytest.fixture
def load(tmp_path: Path):
    def write_and_load(text: str) -> Study:
        file = tmp_path / "study.toml"
        file.write_text(text)
        return load_study(file)

    return write_and_load


@pytest.fixture
def refusal(load):
    """Load a text that must be refused; return the message."""

    def message(text: str) -> str:
        with pytest.raises(UserError) as caught:
            load(text)
        assert re.search(r"study\.toml", str(caught.value))
        return str(caught.value)

    return message


def test_five_lines_are_a_complete_study(load) -> None:
    study = load(
        'task = "unet"\n[sweep]\nstrategy = ["native", "horovod"]\nworkers = [1, 2, 4]\nseed = [0, 1]\n'
    )
    assert study.name == "study"
    assert study.sweep.strategy == ("native", "horovod")
    assert study.sweep.workers == (1, 2, 4)
    assert study.train.epochs is None
    assert study.launch.on == "local"


def test_the_task_alone_is_a_study(load) -> None:
    sweep = load('task = "cnn"').sweep
    assert (sweep.strategy, sweep.workers, sweep.seed) == (
        ("native",),
        (1, 2),
        (0, 1, 2),
    )


def test_any_key_can_be_swept_by_any_of_its_names(load) -> None:
    spellings = [
        "batch_size = [8, 16]",
        '"train.batch_size" = [8, 16]',
        "train.batch_size = [8, 16]",
    ]
    for spelling in spellings:
        assert load(f'task = "cnn"\n[sweep]\n{spelling}').sweep.other == {
            "train.batch_size": [8, 16]
        }
    nested = load('task = "cnn"\n[sweep.train]\nbatch_size = [8, 16]\n')
    assert nested.sweep.other == {"train.batch_size": [8, 16]}


@pytest.mark.parametrize(
    ("sweep", "found"),
    [
        (
            "workers = 2\nxla = true",
            {"train.xla": [True]},
        ),  # a single value is a list of one
        ("workers = [2]\nimage_size = [64, 32]", {"data.image_size": [[64, 32]]}),
        (
            "workers = 2\nimage_size = [[64, 32], [32, 32]]",
            {"data.image_size": [[64, 32], [32, 32]]},
        ),
        ('workers = 2\nseed = [7]\n"data.seed" = [1, 2]', {"data.seed": [1, 2]}),
    ],
)
def test_values_lists_and_pairs_are_swept(
    load, sweep: str, found: dict[str, object]
) -> None:
    study = load(f'task = "cnn"\n[sweep]\n{sweep}')
    assert (study.sweep.workers, study.sweep.other) == ((2,), found)
    assert study.sweep.seed == ((7,) if "data.seed" in found else (0, 1, 2))


def test_strings_may_hold_home_and_variables(
    load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("SET", "cells")
    study = load(
        'task = "unet"\n[data]\nsource = "~/data/${SET}-$SET"\ncache = "/x/$$SET"\n'
    )
    assert study.data.source == "/home/ada/data/cells-cells"
    assert study.data.cache == "/x/$SET"


def test_a_task_file_is_found_beside_the_study(load, tmp_path: Path) -> None:
    (tmp_path / "my_task.py").touch()
    assert load('task = "my_task.py"').task == str((tmp_path / "my_task.py").resolve())


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        (
            'task = "unet"\n[train]\n\nepohcs = 3',
            4,
            ["`epohcs`", "[train]", "Did you mean `epochs`?"],
        ),
        ('task = "unet"\n[train]\ncpus_per_worker = 3', 3, ["belongs in [launch]"]),
        (
            'task = "unet"\n[data]\nwarmup_epochz = 3',
            3,
            ["Did you mean `warmup_epochs` in [train]?"],
        ),
        (
            'task = "unet"\n[launch]\npartition = "gpu"',
            3,
            ["belongs in the site profile"],
        ),
        ('task = "unet"\n[launch]\nnodes = 2', 3, ["`workers`", "`tasks_per_node`"]),
        ('task = "unet"\nepochs = 3', 2, ["the top of the file", "belongs in [train]"]),
        ('[sweep]\ntask = "unet"', 2, ["belongs at the top"]),
        ('task = "unet"\n[trian]\nepochs = 1', 2, ["Did you mean `train`?"]),
        ('task = "unet"\ntrain = 3', 2, ["a section [train]"]),
        (
            'task = "unet"\n[train]\nepochs = "8"',
            3,
            ["a whole number above 0", '"8"', "without quotes"],
        ),
        (
            'task = "unet"\n[train]\nepochs = 0',
            3,
            ["a whole number above 0", "Received 0"],
        ),
        ('task = "unet"\n[train]\nepochs = [1, 2]', 3, ["under [sweep]"]),
        ('task = "unet"\n[train]\nxla = 1', 3, ["true or false"]),
        ('task = "unet"\n[train]\nlearning_rate = nan', 3, ["a number above 0"]),
        (
            'task = "unet"\n[train]\noptimizer = "adan"',
            3,
            ['one of "sgd"', 'Did you mean "adam"?'],
        ),
        ('task = "unet"\n[data]\nsource = 2020-01-01', 3, ["a string", "2020-01-01"]),
        (
            'task = "unet"\n[data]\nvalidation = 1.0',
            3,
            ['above 0 and below 1 or "given"'],
        ),
        ('task = "unet"\n[data]\nimage_size = [64]', 3, ["a list of 2"]),
        ('task = "unet"\n[sweep]\nworkers = []', 3, ["at least one value for workers"]),
        (
            'task = "unet"\n[sweep]\nworkers = [\n1,\n2,\n1]',
            3,
            ["each value of workers once"],
        ),
        (
            'task = "unet"\n[sweep]\nlearning_rate = [1,\n1.0]',
            3,
            ["each value of train.learning_rate once"],
        ),
        (
            'task = "unet"\n[sweep]\nworkers = [1,\n "2"]',
            3,
            ["a whole number above 0 and at most 100000 for workers"],
        ),
        (
            'task = "unet"\n[sweep]\nstrategy = "horovodd"',
            3,
            ['Did you mean "horovod"?'],
        ),
        ('task = "unet"\n[sweep]\nbatchsize = [1]', 3, ["Did you mean `batch_size`?"]),
        (
            'task = "unet"\n[sweep]\nbatch_size = [1]\ntrain.batch_size = [2]',
            4,
            ["once in [sweep]"],
        ),
        ('task = "unet"\n[sweep]\nbatch_size = {a = 1}', 3, ["known key"]),
        (
            'task = "unet"\n[train]\nepochs = 3\n[sweep]\nepochs = [1, 2]',
            5,
            ["[train]", "[sweep]"],
        ),
        ('task = "unet"\n[data]\nsource = ""', 3, ["for data.source", '""']),
        (
            'task = "unet"\n[sweep]\nseed = [' + "0, " * 10_001 + "]",
            3,
            ["10001 values of seed"],
        ),
        (
            'task = "unet"\n[data]\ngroup_pattern = "("',
            3,
            ["a regular expression (missing )"],
        ),
        (
            'task = "unet"\n[data]\ncolours = {cell = "red"}',
            3,
            ["a table of colours", '{"cell": "red"}'],
        ),
        ('task = "unet"\n[data]\nsource = {cell = "red"}', 3, ["for data.source"]),
        (
            'task = "unet"\n[launch]\nbucket_size = "32 MB"',
            3,
            ['a size such as "32 MiB"', '"32 MB"'],
        ),
        ('task = "uent"', 1, ['Did you mean "unet"?']),
        ('\ntask = "missing.py"', 2, ["missing.py, which does not exist"]),
        ('task = { a = "unet" }', 1, ["the path of a Python file"]),
        ('task = "unet"\nname = "a/b"', 2, ["valid as a folder"]),
        (
            'task = "unet"\n[data]\nsource = "$NOT_SET_ANYWHERE/x"',
            3,
            ["NOT_SET_ANYWHERE", "export"],
        ),
        ('task = "unet"\n[train\nepochs = 1', 2, ["valid TOML"]),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(
    refusal, text: str, line: int, parts: list[str]
) -> None:
    message = refusal(text)
    assert re.search(rf"\(study\.toml, line {line}[,)]", message)
    for part in parts:
        assert part in message


def test_a_study_without_a_task_is_refused(refusal) -> None:
    assert 'Write task = "unet" first.' in refusal("[train]\nepochs = 1")


@pytest.mark.parametrize(
    "line",
    [
        "train.epochs = 1" + "0" * 5000,
        "train.epochs = 0x" + "f" * 10_000,
        "train.learning_rate = inf",
        "train.learning_rate = 1e400",
        "train.warmup_epochs = nan",
        "train.epochs = [[1979-05-27]]",
        "data.image_size = [1_000_000, 1_000_000]",
        "sweep.seed = 4294967296",
        "sweep.workers = [1979-05-27]",
        "sweep.workers = [{ a = 1 }]",
        f"sweep.workers = {'[' * 5000}{']' * 5000}",
        f"{'a' * 500_000} = 1",
        f'name = "{"n" * 300}"',
    ],
)
def test_what_is_beyond_sense_is_refused_briefly(tmp_path: Path, line: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f'task = "cnn"\n{line}\n')
    with pytest.raises(UserError) as refused:
        load_study(file)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda file: None, "scalestudy init"),
        (Path.mkdir, "which is a folder"),
        (lambda file: file.write_bytes(b"\x89PNG\xff"), "readable text"),
        (lambda file: file.write_bytes(b'task = "\xff"'), "can't decode"),
        (lambda file: file.write_text('task = "cnn"', "utf-16"), "can't decode"),
        (lambda file: file.write_bytes(b'task = "cnn"\0'), "valid TOML"),
        (os.mkfifo, "no regular file"),
        (lambda file: (file.touch(), os.truncate(file, 2**40)), "bytes are more than"),
        (lambda file: file.symlink_to(file), "link"),
    ],
)
def test_what_is_no_text_of_toml_is_refused_with_its_reason(
    tmp_path: Path, make, words: str
) -> None:
    make(tmp_path / "study.toml")
    with pytest.raises(UserError, match=words):
        load_study(tmp_path / "study.toml")


def test_a_mark_of_the_byte_order_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('\ufefftask = "cnn"\n[sweep]\nworkers = 1\n')
    assert load_study(tmp_path / "study.toml").place.lines["task"] == 1


@pytest.mark.parametrize(
    ("name", "content", "action"),
    [
        ("train.py", b"import keras", "scalestudy launch"),
        ("job.sh", b"srun hostname", "scalestudy init"),
        ("study.yaml", b"task: unet", "TOML"),
        ("s.toml", b'task = "unet"\n[data]\nsource = "C:\\data"', "Write / in paths"),
        ("s.toml", b'task = "unet"\n[data]\nsource = "C:\\users"', "Write / in paths"),
    ],
)
def test_another_kind_of_file_is_told_with_what_to_do(tmp_path, name, content, action):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as refused:
        load_study(tmp_path / name)
    assert action in refused.value.action


FILE = Path("study.toml")


@pytest.mark.parametrize(
    ("given_value", "margin"),
    [
        (0.01, QualityMargin(0.01)),
        (2, QualityMargin(2.0)),
        ("2 %", QualityMargin(0.02, relative=True)),
        ("0.7%", QualityMargin(0.007, relative=True)),
    ],
)
def test_a_margin_is_absolute_or_a_percentage(given_value, margin):
    assert QualityMargin.parse(given_value) == margin


@pytest.mark.parametrize(
    "wrong",
    [
        0,
        -0.1,
        math.inf,
        math.nan,
        10**400,
        True,
        None,
        "0.01",
        "0 %",
        "-2 %",
        "%",
        [1],
        date(2020, 1, 1),
    ],
)
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match="above 0"):
        QualityMargin.parse(wrong)


@given(st.floats(1e-9, 1e6), st.booleans())
def test_a_margin_reads_as_it_was_written(value: float, relative: bool):
    margin = QualityMargin.parse(
        f"{value:.6f} %" if relative and value >= 1e-6 else value
    )
    assert QualityMargin.parse(margin.key) == margin


@pytest.mark.parametrize("text", ["0.01", '"2.5 %"'])
def test_a_study_keeps_its_margin_in_its_record_and_its_file(text: str):
    study = parse_study(f'task = "cnn"\nquality_margin = {text}\n', FILE)
    assert study.quality_margin == QualityMargin.parse(
        text.strip('"') if "%" in text else float(text)
    )
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert parse_study(study_toml(study), FILE) == study


def test_a_wrong_margin_is_refused_with_its_line():
    with pytest.raises(UserError) as caught:
        parse_study('task = "cnn"\nquality_margin = -1\n', FILE)
    assert "study.toml, line 2" in caught.value.received


def test_another_margin_is_no_other_study():
    plain, other = (
        parse_study(f'task = "cnn"\n{text}', FILE)
        for text in ("", "quality_margin = 0.01")
    )
    assert list(differences((plain, []), (other, []))) == []
