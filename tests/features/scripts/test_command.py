"""User scripts, unchanged and with three changed lines, alone and on two workers."""

import json
import os
import runpy
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.engine

SCRIPTS = Path(__file__).parent / "examples"


def launch(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "scalestudy", "launch", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def alone(monkeypatch, script, out, data):
    """Run the original script in this process and return its result."""
    out.mkdir()
    monkeypatch.setattr(sys, "argv", [script, str(out), str(data)])
    runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    return json.loads((out / "result.json").read_text())


CHANGES = {
    "import numpy as np\n": "import numpy as np\nimport scalestudy\n\nworkers = scalestudy.workers()\n",
    "model.fit(": "workers.fit(model, ",
    "model.evaluate(": "workers.evaluate(model, ",
    "model.predict(": "workers.predict(model, ",
}
"""What a user changes in a script, besides `if workers.is_chief` before it saves."""


def changed(script, saving):
    """Return the script with the user's changes; `saving` begins what only rank 0 does."""
    text = (SCRIPTS / script).read_text()
    for before, after in CHANGES.items():
        assert text.count(before) <= 1
        text = text.replace(before, after)
    text, begin, rest = text.partition(saving)
    assert begin
    return f"{text}if workers.is_chief:\n{textwrap.indent(begin + rest, '    ')}"


def shared(folder, strategy, text, out, data):
    """Run a changed script on two workers; return its result and the process."""
    out.mkdir()
    script = folder / "train.py"
    script.write_text(text)
    done = launch(folder, "-n", 2, "--strategy", strategy, "--logs", folder, script, out, data)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((out / "result.json").read_text()), done


def assert_same(one, other, rounding=2e-5):
    assert list(one) == list(other)
    for name, values in one.items():
        np.testing.assert_allclose(values, other[name], rtol=rounding, atol=rounding, err_msg=name)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    from sklearn.datasets import load_digits

    found = load_digits()
    file = tmp_path_factory.mktemp("digits") / "digits.npz"
    np.savez(file, images=found.images[:75].astype("uint8"), labels=found.target[:75])
    return file


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Images of discs on noise, and their masks."""
    from PIL import Image

    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for kind in ("images", "masks"):
        (folder / kind).mkdir()
    rows, columns = np.mgrid[:16, :16]
    for index in range(19):
        y, x = rng.integers(4, 12, 2)
        disc = (rows - y) ** 2 + (columns - x) ** 2 < 16
        noisy = np.where(disc, 180, 70) + rng.integers(-40, 40, (16, 16))
        Image.fromarray(noisy.astype(np.uint8)).save(folder / "images" / f"{index:02}.png")
        Image.fromarray((disc * 255).astype(np.uint8)).save(folder / "masks" / f"{index:02}.png")
    return folder


def test_on_two_horovod_workers_a_script_with_arrays_and_callbacks_has_the_numbers_of_keras_alone(
    framework, tmp_path, monkeypatch, digits
):
    import keras

    expected = alone(monkeypatch, "digits_alone.py", tmp_path / "alone", digits)
    script = changed("digits_alone.py", saving="model.save(")
    found, done = shared(tmp_path, "horovod", script, tmp_path / "shared", digits)
    assert_same(expected["history"], found["history"])
    np.testing.assert_allclose(expected["score"], found["score"], rtol=2e-5)
    models = [keras.models.load_model(tmp_path / kind / "model.keras") for kind in ("alone", "shared")]
    for one, other in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    mine, theirs = ({**model.optimizer.get_config(), "name": ""} for model in models)  # Keras numbers names
    assert mine == theirs
    assert float(models[0].optimizer.iterations) == float(models[1].optimizer.iterations)

    files = [{path.name for path in (tmp_path / kind).iterdir()} for kind in ("alone", "shared")]
    assert files[0] == files[1] == {"log.csv", "best.keras", "model.keras", "result.json"}
    logs = [(tmp_path / kind / "log.csv").read_text().splitlines() for kind in ("alone", "shared")]
    assert [line.split(",")[0] for line in logs[0]] == [line.split(",")[0] for line in logs[1]]
    assert "Epoch 1/5" in done.stdout
    (quiet,) = tmp_path.glob("scalestudy-launch-*/logs/rank-1.log")
    assert "Epoch 1/5" not in quiet.read_text()


def test_on_two_multiworker_workers_a_script_that_reads_files_has_the_numbers_of_keras_alone(
    framework, tmp_path, monkeypatch, pictures
):
    expected = alone(monkeypatch, "masks_alone.py", tmp_path / "alone", pictures)
    script = changed("masks_alone.py", saving='(out / "result.json")')
    found, _ = shared(tmp_path, "multiworker", script, tmp_path / "shared", pictures)
    assert_same(expected["history"], found["history"])
    assert abs(expected["answer"] - found["answer"]) < 1e-5
    assert (tmp_path / "shared" / "best.keras").exists()


def test_the_rank_that_failed_is_named_with_its_last_lines_and_all_others_are_ended(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, signal\n"
        "if os.environ['RANK'] == '1':\n"
        "    raise ValueError('file 17 cannot be read')\n"
        "signal.pause()\n"
    )
    done = launch(tmp_path, "-n", 2, "--strategy", "horovod", script)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "rank 1 ended with exit code 1: ValueError: file 17 cannot be read (train.py, line 3)" in said
    assert "| ValueError: file 17 cannot be read" in done.stderr
    assert "scripts/script_process.py" not in done.stderr


@pytest.mark.slow
def test_a_script_that_is_interrupted_is_named_with_where_its_logs_are(tmp_path):
    script, begun = tmp_path / "train.py", tmp_path / "begun"
    script.write_text(f"import signal\nopen({str(begun)!r}, 'w')\nsignal.pause()\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "scalestudy", "launch", "-n", "2", "--strategy", "horovod", str(script)],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    stopped = "".join(said.splitlines()[-1:])
    assert str(script) in stopped
    assert Path(stopped.split()[-1], "rank-1.log").exists()


def test_started_by_itself_a_script_is_one_worker_and_keras_its_own(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, scalestudy\n"
        "workers = scalestudy.workers()\n"
        "assert workers is scalestudy.workers()\n"
        "class Model:\n"
        "    def fit(self, *data, **arguments): return data, arguments\n"
        "assert workers.fit(Model(), 1, 2, epochs=3, batch='per-worker') == ((1, 2), {'epochs': 3})\n"
        "print(workers.rank, workers.size, workers.local_rank, workers.is_chief, workers.broadcast('a'))\n"
        "workers.barrier()\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)\n"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=plain)
    assert done.stdout == "0 1 0 True a\n", done.stderr


def test_what_a_script_ends_with_is_told(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import scalestudy, sys\nscalestudy.workers()\nsys.exit(int(sys.argv[1]))\n")
    assert launch(tmp_path, script, 0).returncode == 0
    failed = launch(tmp_path, script, 3)
    assert failed.returncode == 1
    assert "the script ended the program by sys.exit(3) (train.py, line 3)" in " ".join(failed.stderr.split())
