"""Image archives in the layout that their publishers describe."""

import dataclasses
import hashlib
import io
import tarfile
from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.data.sources.public.sets import SETS
from scalestudy.data.store.prepare import fetch, find_prepared, prepare
from scalestudy.util.errors import UserError

DRAW = np.random.default_rng(0)


def picture(array, form="PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, form)
    return buffer.getvalue()


@pytest.fixture
def publish(site, monkeypatch):
    def publish(content: bytes) -> None:
        known = SETS["indents@zenodo"]
        (file,) = known.files
        site.files["/" + file.url.removeprefix("https://")] = content
        stand_in = dataclasses.replace(file, hash=f"md5:{hashlib.md5(content).hexdigest()}")
        monkeypatch.setitem(SETS, "indents@zenodo", known._replace(files=(stand_in,)))

    return publish


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            pack.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def scene(i: int, mask_values=(0, 255)) -> tuple[bytes, bytes]:
    mask = np.zeros((12, 16), np.uint8)
    mask[2:6, 3:9] = mask_values[-1]
    if len(mask_values) > 2:
        mask[2, 3:9] = mask_values[1]
    return picture(np.full((12, 16), 10 * i, np.uint8)), picture(mask)


def scenes(count=5) -> dict[str, bytes]:
    pairs = [scene(i) for i in range(count)]
    return {f"images/{i}.png": image for i, (image, _) in enumerate(pairs)} | {
        f"masks/{i}.png": mask for i, (_, mask) in enumerate(pairs)
    }


def test_the_archive_goes_once_it_is_unpacked_and_the_prepared_set_needs_neither(publish, tmp_path):
    publish(tarred(scenes()))
    data = data_of("indents@zenodo", cache=tmp_path / "cache")
    made = prepare(data)
    names = {entry.name for entry in (tmp_path / "cache" / "downloads").iterdir()}
    assert names == {"indents-zenodo", "indents-zenodo.lock"}
    assert find_prepared(data) == made


def test_another_file_than_the_published_is_refused(publish, site, tmp_path):
    publish(tarred(scenes()))
    for path in site.files:
        site.files[path] = tarred({})
    with pytest.raises(UserError, match="published checksum"):
        prepare(data_of("indents@zenodo", cache=tmp_path / "cache"))


def test_what_is_fetched_is_told_and_not_fetched_again(publish, site, tmp_path):
    told = []

    def downloading(what, unit="bytes"):
        return nullcontext(lambda done, total: told.append((what, done, total)))

    publish(tarred(scenes()))
    data = data_of("indents@zenodo", cache=tmp_path / "cache")
    fetch(data, downloading=downloading)
    size = len(next(iter(site.files.values())))
    assert told[-1] == ("masks.tar.gz", size, size)
    prepare(data)
    fetch(data, downloading=downloading)
    assert len(site.asked) == 1


def test_an_archive_that_leads_out_of_its_folder_leaves_nothing(publish, tmp_path):
    publish(tarred({"../../escaped.jpg": scene(0)[0]}))
    with pytest.raises(UserError, match="archive"):
        prepare(data_of("indents@zenodo", cache=tmp_path / "cache"))
    assert not list(tmp_path.rglob("escaped*"))
    left = [entry.name for entry in (tmp_path / "cache" / "downloads").iterdir() if not entry.match("*.lock")]
    assert left == ["indents-zenodo.files"]


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("images_collective/{}.png", "masks_collective/{}.png"),
        ("masks/images/{}.png", "masks/masks/{}.png"),
        ("data/img/{}.png", "data/mask/{}_mask.png"),
        ("train_images/image_{}.png", "train_labels/mask_{}.png"),
    ],
)
def test_the_indents_of_zenodo_are_paired_wherever_they_lie(publish, tmp_path, image, mask):
    files = {}
    for i in range(5):
        files[image.format(i)], files[mask.format(i)] = scene(i)
    publish(tarred({"README.txt": b"", "._x": b"", **files}))
    made = prepare(data_of("indents@zenodo", cache=tmp_path / "cache"))
    assert (made.kind, made.count, made.input_shape) == ("masks", 5, (12, 16, 1))
    assert sorted(made.inputs[:, 0, 0, 0].tolist()) == [0, 10, 20, 30, 40]
    assert (made.targets.sum(axis=(1, 2)) == 24).all()


def test_smoothed_masks_become_binary_at_half_scale(publish, tmp_path):
    files = {}
    for i in range(3):
        files[f"images/{i}.png"], files[f"masks/{i}.png"] = scene(i, (0, 100, 255))
    publish(tarred(files))
    made = prepare(data_of("indents@zenodo", cache=tmp_path / "cache"))
    assert made.class_names == ("background", "foreground")
    assert (made.targets.sum(axis=(1, 2)) == 18).all()


@pytest.mark.parametrize(
    ("names", "told"),
    [(("masks/a.png", "images/c.png"), "a.png"), (("masks/a.png",), "0 images and 1 masks")],
)
def test_a_layout_that_does_not_pair_is_told_with_what_there_is(publish, tmp_path, names, told):
    image, _ = scene(0)
    publish(tarred(dict.fromkeys(names, image)))
    with pytest.raises(UserError) as refused:
        prepare(data_of("indents@zenodo", cache=tmp_path / "cache"))
    assert told in refused.value.received
