"""A forked Python does what a new one does, and there is a fork only where it would."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forking
from command_line import scalestudy, write
from paths import SOURCE, SUPPORT
from python_start import PythonStart
from scalestudy.engines.tensorflow.installation import library_file as horovod_built

TELL = SUPPORT / "tell_start.py"
HOROVOD = ["horovod"] if horovod_built() else []
TORCH = [["ddp"]] if importlib.util.find_spec("torch") else []


@pytest.fixture(autouse=True)
def _forks(pytestconfig):
    if pytestconfig.getoption("new_pythons"):
        pytest.skip("--new-pythons")


def start(*actions: str, python: str = sys.executable, **how) -> subprocess.Popen[str]:
    """Start `tell_start.py`, which prints what it is and then does these actions."""
    streams = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    return subprocess.Popen([python, str(TELL), *actions], **(streams | how))


def told(*actions: str, **how) -> tuple[dict, int, str]:
    """Return what it is, its exit code, and its errors."""
    process = start(*actions, **how)
    output, errors = process.communicate(timeout=600)
    return json.loads(output), process.returncode, errors


def is_fork(**how) -> bool:
    return told(**how)[0]["is_fork"]


@pytest.mark.slow
@pytest.mark.parametrize("leads", [False, True])
def test_a_fork_finds_what_a_new_python_finds(tmp_path, leads):
    paths = os.pathsep.join(map(str, (tmp_path, SOURCE)))
    variables = {
        **os.environ,
        "PYTHONPATH": paths,
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
    }
    how = {"cwd": tmp_path, "env": variables, "start_new_session": leads}
    forked, code, errors = told("a", "b", **how)
    with forking.new_pythons():
        new, code_of_new, errors_of_new = told("a", "b", **how)
    assert (forked.pop("is_fork"), new.pop("is_fork")) == (True, False)
    assert forked == new
    assert new["parent"] == os.getpid()
    assert (code, errors) == (code_of_new, errors_of_new) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "code", "says"),
    [
        ("exit 3", 3, ""),
        ("exit words", 1, "words"),
        ("raise", 1, "ValueError: it was to fail"),
        ("interrupt", -signal.SIGINT, "KeyboardInterrupt"),
        ("kill", -signal.SIGKILL, ""),
        ("later", 0, "a thread\nat exit"),
    ],
)
def test_a_fork_ends_as_a_new_python_does(does, code, says):
    _, forked, errors = told(does)
    with forking.new_pythons():
        _, new, errors_of_new = told(does)
    assert forked == new == code
    assert errors == errors_of_new
    assert says in errors


@pytest.mark.slow
def test_forks_draw_other_random_numbers():
    assert told("draw")[2] != told("draw")[2]


@pytest.mark.slow
def test_a_fork_gets_signals_and_is_waited_for_and_killed_like_any_child():
    with start("wait") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=600) == -signal.SIGTERM
    with start("wait", start_new_session=True) as process:
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(timeout=600) == -signal.SIGKILL
    with start("wait") as process:
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(timeout=600) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TF_NUM_INTRAOP_THREADS", "1"),
        ("MKL_NUM_THREADS", "1"),
        ("LD_LIBRARY_PATH", "/nowhere"),
        ("PYTHONHASHSEED", "5"),
        ("LC_ALL", "C"),
        ("HOME", "/nowhere"),
    ],
)
def test_variables_that_are_read_at_import_must_be_those_of_the_process_to_fork(
    name, value
):
    assert not forking.differing(
        {**os.environ, "XDG_CACHE_HOME": "/nowhere", "TF_TOKEN": "secret"}
    )
    assert forking.differing({**os.environ, name: value}) == {name}


def test_visible_gpus_matter_where_there_are_any(tmp_path, monkeypatch):
    name = "CUDA_VISIBLE_DEVICES"
    monkeypatch.setattr(forking, "GPU", tmp_path / "none")
    assert not forking.differing({**os.environ, name: "3"})
    monkeypatch.setattr(forking, "GPU", tmp_path)
    assert forking.differing({**os.environ, name: "3"}) == {name}


@pytest.mark.parametrize(
    ("source", "engine"),
    [
        ("import torch", "torch"),
        ("import keras, torch", "tensorflow"),
        ("def f():\n    from horovod import keras", "tensorflow"),
        ("import numpy", ""),
    ],
)
def test_a_script_needs_the_engine_that_it_imports(tmp_path, source, engine):
    script = tmp_path / "train.py"
    script.write_text(source)
    for module, arguments in (
        ("scalestudy", ["launch", "-n", "2", "train.py", "--epochs", "3"]),
        ("scalestudy.features.launch.script_process", ["", str(script)]),
    ):
        start = PythonStart(
            python=sys.executable,
            safe=False,
            module=module,
            file="",
            arguments=arguments,
            environment={},
            folder=str(tmp_path),
            new_session=False,
            cores=[0],
        )
        assert forking.engine_of(start) == engine


@pytest.mark.slow
def test_where_they_differ_or_modules_are_brought_a_new_python_starts(tmp_path):
    assert is_fork()
    assert not is_fork(env={**os.environ, "MKL_NUM_THREADS": "1"})
    assert not is_fork(env={**os.environ, "KERAS_BACKEND": "jax"})
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "of_a_test.py").touch()
    assert is_fork(
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(tmp_path)])}
    )
    (tmp_path / "sitecustomize.py").touch()
    assert not is_fork(
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(tmp_path)])}
    )
    (tmp_path / "sitecustomize.py").rename(tmp_path / "torch.py")
    assert not is_fork(
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(tmp_path)])}
    )


def test_an_interpreter_that_a_test_puts_in_its_place_is_started(tmp_path, monkeypatch):
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/bin/sh\necho "$1"\n')
    stand_in.chmod(0o755)
    assert is_fork()
    monkeypatch.setattr(sys, "executable", str(stand_in))
    process = start(python=sys.executable)
    output, _ = process.communicate(timeout=600)
    assert (output, process.returncode) == (f"{TELL}\n", 0)


@pytest.mark.slow
@pytest.mark.new_python
def test_a_test_can_ask_for_new_pythons():
    assert not is_fork()


def test_a_command_that_cannot_start_is_refused_as_ever(tmp_path):
    with pytest.raises(FileNotFoundError):
        start(cwd=tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        start(python=str(tmp_path / "python"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "others"),
    [
        ("", {"keras", "tensorflow", "torch"}),
        ("tensorflow", {"torch"}),
        *([("torch", {"tensorflow"})] if TORCH else []),
    ],
)
def test_a_fork_server_imports_all_modules_of_ours_and_no_other_engine(engine, others):
    code = (
        "import sys; sys.modules['horovod'] = None  # as if it were not built\n"
        "import fork_server; fork_server.import_engine(sys.argv[1]); print(*sys.modules)"
    )
    paths = os.pathsep.join(map(str, (SOURCE, SUPPORT)))
    done = subprocess.run(
        [sys.executable, "-c", code, engine],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(done.stdout.split())
    assert {"scalestudy.cli.study_commands", "scalestudy.report.figure"} <= imported
    assert (f"scalestudy.engines.{engine}.trainer" in imported) == bool(engine)
    assert not imported & others


def digests(folder: Path) -> dict[str, str]:
    files = folder.glob("points/*/run-1/result.json")
    return {
        file.parts[-3]: json.loads(file.read_text())["weights_digest"] for file in files
    }


@pytest.mark.engine
@pytest.mark.parametrize(
    "strategies", [["multiworker", *HOROVOD], *TORCH], ids=" ".join
)
def test_forked_workers_learn_the_same_weights_bit_for_bit(tmp_path, strategies):
    learnt = {}
    for how, context in (
        ("fork", contextlib.nullcontext()),
        ("new", forking.new_pythons()),
    ):
        folder = tmp_path / how
        folder.mkdir()
        with context:
            file = write(folder, strategies, (2,), epochs=1)
            code, output = scalestudy("run", file, "--no-report", cwd=folder)
        assert code == 0, output
        learnt[how] = digests(folder / "studies" / "study")
    assert len(learnt["new"]) == len(strategies)
    assert learnt["fork"] == learnt["new"]
