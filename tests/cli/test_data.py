from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalestudy.engines.tensorflow.traits import TensorFlowTraits
from scalestudy.engines.torch.traits import TorchTraits
from scalestudy.util.errors import UserError


def test_a_source_is_prepared_ahead(call, tmp_path: Path) -> None:
    code, text, _ = call(
        "data",
        "prepare",
        "digits",
        "--cache",
        tmp_path / "c",
        "--image-size",
        "16",
        "16",
    )
    assert code == 0
    assert "digits: 1438 training samples" in text
    assert len(list((tmp_path / "c").glob("*/meta.json"))) == 1


def test_every_data_set_of_a_study_is_prepared_ahead(call, study: Path) -> None:
    study.write_text(
        'task = "cnn"\n[data]\ncache = "c"\n[sweep]\nworkers = 500\nimage_size = [[8, 8], [4, 4]]'
    )
    code, text, _ = call("data", "prepare", study)
    assert code == 0
    assert text.count("training samples, prepared in") == 2
    assert len(list((study.parent / "c").glob("*/meta.json"))) == 2


def test_wrong_input_ends_with_2(call, study: Path, tmp_path: Path) -> None:
    for arguments in (
        ["no/where", "--cache", tmp_path / "c"],
        ["digits", "--cache", tmp_path / "c", "--image-size", "0", "8"],
        [study, "--image-size", "8", "8"],
        [tmp_path / "none.toml"],
    ):
        assert call("data", "prepare", *arguments)[0] == 2


TASK = """
import keras
data = "digits"
def model(data):
    keras.utils.get_file("w.bin", {url!r})
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(), keras.layers.Dense(10)])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture
def weighty(study: Path, monkeypatch) -> Path:
    """A study of a task with weights to download, and an empty Keras folder."""
    monkeypatch.setenv("KERAS_HOME", str(study.parent / "keras"))
    served = study.parent / "served"
    served.write_text("weights")
    (study.parent / "task.py").write_text(TASK.format(url=served.as_uri()))
    study.write_text('task = "task.py"\n[sweep]\nworkers = [1, 2]\nseed = 0\n')
    return study


@pytest.mark.engine
def test_the_weights_of_a_users_task_are_fetched_ahead(call, weighty: Path) -> None:
    code, _, err = call("data", "prepare", weighty)
    assert code == 0, err
    assert (weighty.parent / "keras" / "datasets" / "w.bin").read_text() == "weights"


def test_without_tensorflow_data_are_prepared_and_the_weights_are_told_to_be_missing(
    call, weighty: Path, monkeypatch
) -> None:
    missing = UserError("TensorFlow", "none", "Install it.")
    monkeypatch.setattr(TensorFlowTraits, "missing_software", lambda self: missing)
    code, text, err = call("data", "prepare", weighty)
    assert code == 0
    assert "digits: 1438 training samples" in text
    assert "no TensorFlow here" in err
    assert not (weighty.parent / "keras").exists()


def test_the_model_of_a_study_is_built_for_each_of_its_engines(
    call, weighty: Path, monkeypatch
) -> None:
    built = []
    monkeypatch.setattr(
        "scalestudy.app.task_checks.build_task",
        lambda path, asked, *_: built.append(asked["engine"]) or (),
    )
    for engine in (TensorFlowTraits, TorchTraits):
        monkeypatch.setattr(engine, "missing_software", lambda self: None)
    text = weighty.read_text().replace(
        "workers = [1, 2]", 'strategy = ["native", "ddp"]\nworkers = 1'
    )
    weighty.write_text(text)
    code, _, err = call("data", "prepare", weighty)
    assert code == 0, err
    assert sorted(built) == ["tensorflow", "torch"]


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """Two folders of photos with the same names: classes, or pairs of images."""
    draw = np.random.default_rng(0)
    for folder in ("before", "after"):
        (tmp_path / "set" / folder).mkdir(parents=True)
        for name in ("anna", "berta"):
            pixels = draw.integers(0, 255, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "set" / folder / f"{name}.png")
    return tmp_path / "set"


def all_commands(call, tmp_path: Path, source: Path) -> list[tuple[int, str]]:
    """Show, initialise and prepare a source; return the exit code and all output of each."""
    commands = (
        ("data", "show", source),
        ("init", tmp_path / "first.toml", "--data", source),
        ("data", "prepare", source, "--cache", tmp_path / "cache"),
    )
    outputs = []
    for command in commands:
        code, printed, errors = call(*command)
        outputs.append((code, " ".join((printed + errors).split())))
    return outputs


def test_all_commands_refuse_a_folder_of_two_readings_with_the_keys_for_each(
    call, tmp_path: Path, doubtful: Path
) -> None:
    for code, text in all_commands(call, tmp_path, doubtful):
        assert code == 2
        assert 'images = "after/*"' in text and "label_pattern = '^([^/]+)/'" in text


def test_all_commands_warn_of_classes_that_are_decimals(
    call, tmp_path: Path, doubtful: Path
) -> None:
    rows = [
        "before/anna.png,0.1",
        "before/berta.png,0.2",
        "after/anna.png,0.1",
        "after/berta.png,0.2",
    ]
    (doubtful / "labels.csv").write_text("\n".join(["file,label", *rows]))
    for code, text in all_commands(call, tmp_path, doubtful / "labels.csv"):
        assert code == 0
        assert "numbers with decimals" in text
