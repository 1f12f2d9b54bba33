"""`scalestudy predict` as users call it: its own processes, files and output."""

import csv
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from model_records import record
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.images.decode import read_mask
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import result_of

BRIGHT = {
    "module": "keras",
    "class_name": "Sequential",
    "config": {
        "name": "bright",
        "layers": [
            {
                "module": "keras.layers",
                "class_name": "InputLayer",
                "config": {
                    "batch_shape": [None, 8, 8, 1],
                    "dtype": "float32",
                    "name": "image",
                },
            },
            {
                "module": "keras.layers",
                "class_name": "Activation",
                "config": {"name": "same", "activation": "linear"},
            },
        ],
    },
}
"""A model without weights that takes the brightness of a pixel as its probability."""


@pytest.fixture
def model(tmp_path):
    """A run with a model that is written without Keras: a `.keras` file is an archive."""
    import io

    import h5py

    text = 'task = "unet"\n[sweep]\nstrategy = "single"\nworkers = 1\nseed = 0\n'
    read = parse_study(text, tmp_path / "bright.toml")
    study = StudyFolder.create_or_open(
        tmp_path / "bright", read, expand(read, gpus=0, cores=8), text
    )
    (point,) = study.points()
    run = study.new_run(point)
    run.write_model_record(record())
    weights = io.BytesIO()
    h5py.File(weights, "w").close()
    with zipfile.ZipFile(run.model, "w") as archive:
        archive.writestr(
            "metadata.json", json.dumps({"keras_version": "3.0.0", "date_saved": ""})
        )
        archive.writestr("config.json", json.dumps(BRIGHT))
        archive.writestr("model.weights.h5", weights.getvalue())
    run.write_result(result_of(point, 0.9))
    return run.path


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for number, size in enumerate([(8, 8), (19, 25), (4, 6)]):
        pixels = np.random.default_rng(number).integers(0, 256, size).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def scalestudy(*words, cwd, **variables):
    return subprocess.run(
        [sys.executable, "-m", "scalestudy", *map(str, words)],
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, **variables},
    )


@pytest.mark.engine
def test_masks_are_written_and_damaged_images_are_named(model, images, tmp_path):
    (images / "torn.png").write_bytes((images / "0.png").read_bytes()[:60])
    done = scalestudy(
        "model", "predict", model, "images", "--out", "out", "--overlay", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert "Left out: " in done.stderr and "torn.png: " in done.stderr
    assert (
        "3 images" in done.stdout and "1 left out: out/predictions.csv" in done.stdout
    )
    for number in range(3):
        pixels = np.asarray(Image.open(images / f"{number}.png"))
        mask = read_mask(tmp_path / "out" / "masks" / f"{number}.png")
        assert np.array_equal(mask, pixels > 127)
        assert (
            Image.open(tmp_path / "out" / "overlays" / f"{number}.png").size
            == pixels.shape[::-1]
        )
    with open(tmp_path / "out" / "predictions.csv") as table:
        assert [row["file"] for row in csv.DictReader(table)] == [
            f"images/{n}.png" for n in range(3)
        ]
    summary = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert summary["complete"] is True
    assert [item["file"] for item in summary["skipped"]] == ["images/torn.png"]


@pytest.mark.slow
@pytest.mark.new_python
def test_without_a_framework_it_says_where_to_run(model, images, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'tensorflow' else find(name, *more)\n"
    )
    path = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    done = scalestudy(
        "model",
        "predict",
        model,
        "images",
        "--out",
        "out",
        cwd=tmp_path,
        PYTHONPATH=path,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "TensorFlow, which computes the predictions" in done.stderr
    assert "Run this where training runs" in done.stderr
