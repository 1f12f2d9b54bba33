"""What of a record may run: what the user has named, and tasks with which this user has trained."""

from pathlib import Path

import pytest

from model_records import record
from scalestudy.config.point import Point
from scalestudy.config.task_sources import digests, source_files
from scalestudy.store.permission import (
    Permission,
    permit_point,
    permit_task,
    without_sources,
)
from scalestudy.store.trained_code import add_trained
from scalestudy.util.errors import UserError
from synthetic_diagnosis import point as made


@pytest.fixture
def task(tmp_path: Path) -> Path:
    file = tmp_path / "task.py"
    file.write_text("loss = 'mse'\n")
    return file


def point_of(**changes: object) -> Point:
    return made().model_copy(update=changes)


def test_a_point_of_a_named_task_is_permitted_without_what_could_name_code_or_hosts() -> (
    None
):
    point = made()
    launch = {"hosts": ("elsewhere",), "site": "site.toml"}
    data = {"read": "/evil/read.py", "cache": "/evil", "source": "/evil"}
    point = point.on(launch=point.launch.model_copy(update=launch))
    point = point.model_copy(update={"data": point.data.model_copy(update=data)})
    permitted = permit_point(point)
    assert permitted.task == point.task
    assert (permitted.launch.hosts, permitted.launch.site, permitted.environment) == (
        None,
        None,
        None,
    )
    assert (permitted.data.read, permitted.data.cache, permitted.data.source) == (
        None,
        None,
        "none",
    )
    assert permitted.train == point.train


def test_a_task_file_is_permitted_where_this_user_has_trained_with_it_or_if_it_is_named(
    task: Path,
) -> None:
    point = point_of(task=str(task))
    with pytest.raises(UserError, match=f"--task {task}"):
        permit_point(point)
    assert permit_point(point, Permission(task)).task == str(task)
    add_trained(str(task), digests(source_files(str(task))))
    assert permit_point(point).task == str(task)
    task.write_text("loss = 'mae'\n")
    with pytest.raises(UserError):
        permit_point(point)


def test_a_named_file_takes_the_place_of_a_recorded_one(task: Path) -> None:
    assert permit_task("/evil/task.py", permission=Permission(task)).task == str(task)
    assert permit_task("/evil/task.py").task == ""
    assert permit_task("cnn", permission=Permission(task)).task == "cnn"


def test_an_environment_is_asked_for(tmp_path: Path) -> None:
    point = made()
    environments = {point.engine: str(tmp_path / "recorded")}
    point = point.on(
        launch=point.launch.model_copy(update={"environments": environments})
    )
    with pytest.raises(UserError, match=f"--environment {tmp_path / 'recorded'}"):
        permit_point(point)
    named = tmp_path / "named"
    (named / "bin").mkdir(parents=True)
    (named / "bin" / "python").touch()
    assert permit_point(point, Permission(environment=named)).environment == str(named)


@pytest.mark.parametrize(
    "wrong", [{"task": Path("none.py")}, {"environment": Path("none")}]
)
def test_what_is_named_must_exist(wrong: dict[str, Path]) -> None:
    with pytest.raises(UserError, match="none"):
        Permission(**wrong)


def test_a_model_goes_to_its_process_without_the_sources_of_its_data() -> None:
    given = record(
        data={
            "source": "/evil",
            "read": "/evil/read.py",
            "cache": "/evil",
            "fit": "crop",
        }
    )
    assert without_sources(given) == record(data={"fit": "crop"})
