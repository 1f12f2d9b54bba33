"""Private names of Keras, TensorFlow and Horovod: each is used in one file and still exists; no downloads."""

import ast
import re
from pathlib import Path

import pytest

from scalestudy.util.errors import UserError

SOURCE = Path(__file__).parents[3] / "src" / "scalestudy"
KERAS = SOURCE / "engines" / "keras" / "private.py"
HOROVOD = SOURCE / "engines" / "tensorflow" / "horovod_rendezvous.py"
INTERNAL = {
    "keras": ((KERAS,), re.compile(r"keras\.(src|_)")),
    "tensorflow": (
        (KERAS,),
        re.compile(r"tensorflow\.(python|core|compiler)|tf_keras"),
    ),
    "horovod": ((HOROVOD,), re.compile(r"horovod\.(?!tensorflow$)")),
}
"""For each library, the files that may import private names, and the pattern of such imports."""
PACKAGES = ("engines", "tasks", "training")


def modules(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def foreign_private_attributes(file: Path) -> set[str]:
    """Return names with one leading underscore that are accessed on other objects than `self` or `cls`."""
    return {
        node.attr
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and re.match(r"_[a-z]", node.attr)
        and not (
            isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls", "_local", "os", "sys")
        )
        and node.attr not in ("_replace", "_fields", "_asdict")
        and not node.attr.startswith("_foreach_")  # documented by PyTorch
    }


@pytest.mark.slow
@pytest.mark.parametrize("library", INTERNAL)
def test_what_is_not_public_is_imported_by_one_file_alone(library):
    allowed, pattern = INTERNAL[library]
    for file in SOURCE.rglob("*.py"):
        if file not in allowed:
            internal = {name for name in modules(file) if pattern.match(name)}
            assert not internal, (
                f"{file.relative_to(SOURCE)} imports {internal}: {allowed[-1]} is for that"
            )


def test_private_attributes_of_others_are_used_in_one_file_alone():
    for package in PACKAGES:
        for file in (SOURCE / package).rglob("*.py"):
            if file != KERAS:
                found = foreign_private_attributes(file)
                assert not found, (
                    f"{file.relative_to(SOURCE)} uses {found}: {KERAS.name} is for that"
                )


@pytest.mark.engine
def test_they_mean_in_keras_what_we_take_them_for(framework):
    import keras

    from scalestudy.engines.keras import private

    inner = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(2), keras.layers.ReLU()]
    )
    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inner(inputs)))

    assert {type(layer).__name__ for layer in private.all_layers(model)} >= {
        "Dense",
        "ReLU",
        "Sequential",
    }
    assert (
        len([x for x in private.all_layers(model) if isinstance(x, keras.layers.Dense)])
        == 2
    )
    assert float(private.settable_rate(keras.optimizers.SGD(0.25)).value) == 0.25
    falling = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    assert private.settable_rate(keras.optimizers.SGD(falling)) is None


TASK = """
import keras

kept = keras.utils.get_file("head.weights", {url!r})
model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture
def load(framework, tmp_path, monkeypatch):
    """Load a task as a worker does, into an empty Keras folder; a file serves its weights."""
    from keras.src.backend import config
    from keras.src.utils import file_utils

    from scalestudy.engines.keras.private import forbid_downloads
    from scalestudy.tasks.load import load_task
    from scalestudy.tasks.task import DataInfo

    monkeypatch.setattr(file_utils, "urlretrieve", file_utils.urlretrieve)
    monkeypatch.setattr(config, "_KERAS_DIR", str(tmp_path / "keras"))
    forbid_downloads()
    (tmp_path / "served").write_text("weights")
    file = tmp_path / "task.py"
    file.write_text(TASK.format(url=(tmp_path / "served").as_uri()))
    return lambda: load_task(str(file), DataInfo("classes", (8, 8, 1), 10))


@pytest.mark.engine
def test_a_task_whose_weights_are_not_there_is_refused_with_what_to_do(load, tmp_path):
    with pytest.raises(
        UserError, match=r"served in a worker.*scalestudy data prepare STUDY"
    ):
        load()
    assert not list((tmp_path / "keras").rglob("head*"))


@pytest.mark.engine
def test_a_task_whose_weights_are_there_is_built(load, tmp_path):
    kept = tmp_path / "keras" / "datasets" / "head.weights"
    kept.parent.mkdir(parents=True)
    kept.write_text("weights")
    assert load().model.count_params() == 650
