"""How a script is distributed is told by its imports and names."""

import pytest

from scalestudy.features.launch import script_strategy
from scalestudy.features.launch.script_strategy import (
    find_strategy,
    names_joining,
    refuse_alone,
    refuse_keras_3,
)
from scalestudy.util.errors import UserError


@pytest.fixture
def file(tmp_path):
    return tmp_path / "train.py"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch", "ddp"),
        ("import tensorflow as tf\nimport horovod.tensorflow.keras as hvd", "horovod"),
        ("import keras\nimport horovod.tensorflow as hvd", "horovod"),
        ("import horovod.tensorflow as hvd", "horovod"),
        (
            "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()",
            "multiworker",
        ),
        (
            "import tensorflow as tf\ns = tf.distribute.experimental.CollectiveAllReduceStrategy()",
            "multiworker",
        ),
        ("from tensorflow.distribute import MirroredStrategy", "mirrored"),
        ("import tensorflow as tf  # MirroredStrategy some day", "single"),
        ("import tf_keras, tensorflow", "single"),
    ],
)
def test_the_strategy_is_the_one_that_the_script_names(file, text, name):
    file.write_text(text)
    found = find_strategy(file)
    assert (found.name, found.doubt) == (name, "")


def test_a_module_beside_the_script_may_name_it(file):
    file.write_text("import tensorflow, network")
    (file.parent / "network.py").write_text("import horovod.tensorflow as hvd")
    assert find_strategy(file).name == "horovod"


def test_of_two_strategies_one_is_started_and_both_are_said(file):
    file.write_text(
        "import tensorflow as tf\n"
        "if many:\n    s = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "else:\n    s = tf.distribute.MirroredStrategy()\n"
    )
    found = find_strategy(file)
    assert found.name == "multiworker"
    assert "mirrored" in found.doubt and "--strategy" in found.doubt
    assert find_strategy(file, "mirrored").doubt == ""


@pytest.mark.parametrize(
    ("text", "strategy", "joins"),
    [
        ("import torch\nmodel = torch.nn.Linear(1, 1)", "ddp", False),
        ("import torch.distributed as dist\ndist.init_process_group()", "ddp", True),
        ("from accelerate import Accelerator", "ddp", True),
        ("import lightning as L", "ddp", True),
        ("from transformers import AutoModel", "ddp", False),
        ("from trl import SFTTrainer", "ddp", True),
        ("import tensorflow", "horovod", False),
        ("import horovod.tensorflow", "horovod", True),
        ("import keras", "multiworker", False),
        (
            "from tensorflow.distribute import MultiWorkerMirroredStrategy",
            "multiworker",
            True,
        ),
    ],
)
def test_the_processes_of_a_script_join_only_if_it_names_what_joins_them(
    file, text, strategy, joins
):
    file.write_text(text)
    assert names_joining(file, strategy) is joins


def test_a_script_that_chooses_its_gpu_must_see_all(file):
    file.write_text(
        "import tensorflow as tf\ntf.config.set_visible_devices(gpus[rank], 'GPU')"
    )
    assert find_strategy(file).chooses_gpu
    file.write_text(
        "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()"
    )
    assert not find_strategy(file).chooses_gpu


def test_a_script_that_distributes_nothing_is_no_script_for_several_workers(file):
    file.write_text("import keras")
    refuse_alone(file, "single", 1)
    with pytest.raises(UserError, match="distributed-script"):
        refuse_alone(file, "single", 2)


@pytest.mark.parametrize(
    ("strategy", "text", "said"),
    [
        ("multiworker", "import tensorflow\nmodel.fit(x)", "20585"),
        ("horovod", "import horovod.tensorflow.keras as hvd", "Horovod's optimizer"),
        ("horovod", "from horovod import keras", "Horovod's optimizer"),
        ("multiworker", "import tensorflow\nfor x in data: step(x)", None),
        ("horovod", "import horovod.tensorflow as hvd\nmodel.fit(x)", None),
        ("mirrored", "import tensorflow\nmodel.fit(x)", None),
    ],
)
def test_what_does_not_work_with_keras_3_is_refused_before_it_starts(
    file, monkeypatch, strategy, text, said
):
    file.write_text(text)
    monkeypatch.setattr(script_strategy, "_keras_major", lambda: 3)
    if said is None:
        refuse_keras_3(file, strategy, {})
    else:
        with pytest.raises(UserError, match=rf"(?s){said}.*TF_USE_LEGACY_KERAS=1"):
            refuse_keras_3(file, strategy, {})
    refuse_keras_3(file, strategy, {"TF_USE_LEGACY_KERAS": "1"})
    monkeypatch.setattr(script_strategy, "_keras_major", lambda: 2)
    refuse_keras_3(file, strategy, {})


def test_a_script_that_imports_keras_by_name_gets_keras_3_whatever_the_variable_says(
    file, monkeypatch
):
    monkeypatch.setattr(script_strategy, "_keras_major", lambda: 3)
    legacy = {"TF_USE_LEGACY_KERAS": "1"}
    file.write_text("import horovod.tensorflow.keras as hvd\nfrom models import build")
    models = file.parent / "models.py"
    models.write_text("from tensorflow import keras\nfrom keras.layers import Dense")
    with pytest.raises(
        UserError, match=r"(?s)imports of models\.py.*tf_keras\.optimizers"
    ):
        refuse_keras_3(file, "horovod", legacy)
    models.write_text("from tensorflow import keras\nfrom tf_keras.layers import Dense")
    refuse_keras_3(file, "horovod", legacy)
    file.write_text(
        "import keras, tensorflow\nmodel.fit(x)"
    )  # trains with Keras 3, too
    refuse_keras_3(file, "mirrored", legacy)
