import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.catalog import TASKS, applications, is_ours, task_file
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.config.settings import DataSettings, TrainSettings
from scalestudy.config.task_defaults import COMMON, NAMES, read_task_file, task_defaults
from scalestudy.util.errors import UserError


@pytest.mark.parametrize(
    ("task", "kind", "source"),
    [("unet", "masks", "indents"), ("cnn", "classes", "digits")],
)
def test_our_tasks_say_what_they_bring_in_their_own_files(task, kind, source):
    assert (task_defaults(task).kind, task_defaults(task).source) == (kind, source)
    assert task_file(task).name == f"{task}.py"


def test_a_users_file_brings_its_training_as_ours_do(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text('data = "digits"\ntrain = {"epochs": 3, "optimizer": "adamw"}\n')
    train = task_defaults(str(file)).complete_train(TrainSettings(optimizer="sgd"))
    assert (train.epochs, train.optimizer, train.batch_size) == (
        3,
        "sgd",
        COMMON["batch_size"],
    )
    assert task_defaults(str(file)).complete_data(DataSettings()).source == "digits"


def test_an_edited_file_is_read_again(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text('data = "digits"')
    assert task_defaults(str(file)).source == "digits"
    file.write_text('data = "indents"')
    os.utime(file, ns=(1, 1))
    assert task_defaults(str(file)).source == "indents"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'train = {"epochs": "many"}',
            "a whole number above 0 and at most 1000000 for train.epochs",
        ),
        ('train = {"epoch": 3}', "`epoch`"),
        ('train = {"xla": True}', "`xla`"),
        ("train = 3", "3"),
        ('kind = "boxes"', "'boxes'"),
    ],
)
def test_what_the_keys_do_not_take_is_refused_with_the_file(tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError) as refused:
        task_defaults(str(tmp_path / "mine.py"))
    assert said in str(refused.value)
    assert "mine.py" in str(refused.value)


def test_without_any_source_it_says_where_to_name_one():
    with pytest.raises(UserError, match=r"\[data\]"):
        task_defaults("/nowhere/task.py").complete_data(DataSettings())


def test_every_task_of_ours_is_one_file_of_the_form_that_users_write():
    for name in TASKS.built_in():
        text = task_file(name).read_text()
        assert all(
            f"\n{word}" in text for word in ("kind = ", "data = ", "def model(data")
        )


def test_the_models_of_keras_are_known_without_importing_it():
    assert {"ResNet50", "EfficientNetV2B0", "MobileNetV2", "VGG16"} <= set(
        applications()
    )
    assert not {name for name in applications() if not name[0].isupper()}


def test_a_study_may_name_one(write_study):
    study = load_study(
        write_study('task = "keras:MobileNetV2"\n[data]\nsource = "digits"')
    )
    assert (study.task, is_ours(study.task)) == ("keras:MobileNetV2", True)
    assert task_defaults(study.task).train["weights"] == "imagenet"
    assert task_file(study.task).name == "applications.py"


def test_a_name_that_keras_has_not_is_refused_with_its_line(write_study):
    with pytest.raises(UserError) as refused:
        load_study(write_study('task = "keras:MobilNetV2"\n[data]\nsource = "digits"'))
    assert "line 1" in refused.value.received
    assert 'Did you mean "keras:MobileNetV2"?' in refused.value.action


def test_the_points_of_a_study_have_the_keys_that_its_task_brings(write_study):
    study = load_study(write_study('task = "resnet50"\n[data]\nsource = "digits"'))
    own = load_study(
        write_study(
            'task = "resnet50"\n[data]\nsource = "digits"\nimage_size = [64, 64]'
        )
    )
    sizes = [expand(item, gpus=8, cores=8)[0].data.image_size for item in (study, own)]
    assert sizes == [(300, 300), (64, 64)]


def test_a_task_brings_keys_of_data_where_the_study_says_nothing():
    defaults = task_defaults("resnet50").complete_data(DataSettings(source="digits"))
    own = task_defaults("resnet50").complete_data(
        DataSettings(source="digits", image_size=(64, 64))
    )
    assert (defaults.image_size, own.image_size) == ((300, 300), (64, 64))
    assert (defaults.fit, DataSettings().fit) == ("stretch", "pad")


def test_a_task_file_may_bring_its_source_with_other_keys(tmp_path):
    file = tmp_path / "my_task.py"
    file.write_text(
        'data = {"source": "digits", "image_size": [16, 16]}\nkind = "classes"\n'
    )
    assert task_defaults(str(file)).complete_data(DataSettings()).image_size == (16, 16)
    assert task_defaults(str(file)).complete_data(DataSettings()).source == "digits"


@pytest.mark.parametrize(
    "data", ['{"size": 3}', '{"image_size": "large"}', '{"image_size": [0, 1]}']
)
def test_a_key_that_data_does_not_take_is_refused_by_the_file(tmp_path, data):
    file = tmp_path / "my_task.py"
    file.write_text(f"data = {data}\n")
    with pytest.raises(UserError, match=r"my_task\.py"):
        task_defaults(str(file))


def test_a_file_of_weights_is_found_from_the_study_file(write_study, tmp_path):
    file = write_study(
        'task = "resnet50"\n[data]\nsource = "digits"\n[train]\nweights = "leaves.h5"'
    )
    assert load_study(file).train.weights == str(file.parent.resolve() / "leaves.h5")
    for word in ("imagenet", "none"):
        text = (
            f'task = "resnet50"\n[data]\nsource = "digits"\n[train]\nweights = "{word}"'
        )
        assert load_study(write_study(text)).train.weights == word


@pytest.fixture
def read(tmp_path):
    def of(text: str):
        (tmp_path / "t.py").write_text(text)
        return read_task_file(tmp_path / "t.py")

    return of


def test_literals_at_the_top_are_known(read):
    text = read(
        'import keras\ndata = "folder"\nkind: str = "masks"\ntrain = {"epochs": 3}\nraise SystemExit\n'
    )
    assert text.values == {"data": "folder", "kind": "masks", "train": {"epochs": 3}}
    assert not text.computed


def test_names_assigned_together_are_computed(read):
    assert read('data, kind = "digits", "classes"\n').computed == {"data", "kind"}


def test_names_inside_functions_and_classes_are_others(read):
    text = read(
        'data = "a"\ndef model(data):\n    data = "b"\nclass C:\n    kind = "masks"\n'
    )
    assert text.values == {"data": "a"}
    assert not text.computed


@pytest.mark.parametrize(
    "text",
    [
        'import os\ndata = os.environ["DATA"]',
        'if True:\n    data = "a"',
        'data, kind = *kinds, "masks"',
        "data, kind = settings()",
        'data = "a"\ndata += "b"',
        "from somewhere import data",
        "from somewhere import *",
        'print(data := "a")',
        "def data():\n    pass",
        'try:\n    from somewhere import data\nexcept ImportError:\n    data = "a"',
    ],
)
def test_what_only_running_would_tell_is_not_known(read, text):
    assert "data" not in read(text).values


def test_the_last_word_counts(read):
    assert read('data = f()\ndata = "a"').values == {"data": "a"}
    assert read('data = "a"\ndata = f()').computed == {"data"}


@pytest.mark.parametrize(
    "line",
    [
        *(
            "train = dict(epochs=5)",
            'train = {"optimizer": Adam}',
            "engine = ENGINE",
            "kind: str = f()",
        ),
        *(
            'data = Path("a") / "b"',
            'data = {"source": str("a"), "image_size": [8, 8]}',
        ),
    ],
)
def test_a_computed_setting_is_refused_and_a_function_of_its_name_is_none(
    tmp_path, line
):
    """The file is read, not executed, so such a setting would be left out silently."""
    name = line.split()[0].rstrip(":")
    (tmp_path / "t.py").write_text(line)
    with pytest.raises(UserError) as refusal:
        task_defaults(str(tmp_path / "t.py"))
    assert f"`{name}`" in refusal.value.expected
    assert "t.py" in refusal.value.received
    (tmp_path / "u.py").write_text(
        f"from somewhere import *\ndef {name}():\n    pass\n"
    )
    made = task_defaults(str(tmp_path / "u.py"))
    assert (made.train, made.source, made.data) == (COMMON, None, {})


@pytest.mark.parametrize("content", ["def model(:", "data = '\0'"])
def test_what_is_no_python_is_refused(read, content):
    with pytest.raises(UserError, match=r"t\.py"):
        read(content)


LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(NAMES), LITERALS))
def test_any_literal_is_read_as_python_would(tmp_path_factory, values):
    file: Path = tmp_path_factory.mktemp("t") / "t.py"
    file.write_text(
        "".join(f"{name} = {value!r}\n" for name, value in values.items()),
        encoding="utf-8",
    )
    assert read_task_file(file).values == values


def test_a_named_pipe_is_refused_and_not_opened(tmp_path):
    os.mkfifo(tmp_path / "t.py")
    with pytest.raises(UserError, match="no regular file"):
        read_task_file(tmp_path / "t.py")
