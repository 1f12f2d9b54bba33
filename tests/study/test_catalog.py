import os

import pytest

from scalestudy.errors import UserError
from scalestudy.study.catalog import COMMON, TASKS, resolved_data, resolved_train, task_defaults, task_file
from scalestudy.study.settings import DataSettings, TrainSettings


@pytest.mark.parametrize(
    ("task", "kind", "source"), [("unet", "masks", "indents"), ("cnn", "classes", "digits")]
)
def test_our_tasks_say_what_they_bring_in_their_own_files(task, kind, source):
    assert (task_defaults(task).kind, task_defaults(task).source) == (kind, source)
    assert task_file(task).name == f"{task}.py"


def test_a_users_file_brings_its_training_as_ours_do(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text('data = "digits"\ntrain = {"epochs": 3, "optimizer": "lamb"}\n')
    train = resolved_train(str(file), TrainSettings(optimizer="sgd"))
    assert (train.epochs, train.optimizer, train.batch_size) == (3, "sgd", COMMON["batch_size"])
    assert resolved_data(str(file), DataSettings()).source == "digits"


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
        ('train = {"epochs": "many"}', "a whole number above 0 and at most 1000000 for train.epochs"),
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


def test_a_task_whose_file_is_elsewhere_has_what_all_have():
    assert task_defaults("/nowhere/task.py").train == COMMON


def test_without_any_source_it_says_where_to_name_one():
    with pytest.raises(UserError, match=r"\[data\]"):
        resolved_data("/nowhere/task.py", DataSettings())


def test_every_task_of_ours_is_one_file_of_the_form_that_users_write():
    for name in TASKS.built_in():
        text = task_file(name).read_text()
        assert all(f"\n{word}" in text for word in ("kind = ", "data = ", "def model(data"))


@pytest.mark.parametrize("source", ["a\\0b", "\\ud800", "x" * 5000])
def test_a_source_that_no_path_can_be_is_refused_with_the_file(tmp_path, source):
    (tmp_path / "task.py").write_text(f'data = "{source}"\n')
    with pytest.raises(UserError, match="without NUL"):
        task_defaults(str(tmp_path / "task.py"))
