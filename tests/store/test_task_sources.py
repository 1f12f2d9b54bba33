from pathlib import Path

import pytest

from scalestudy.app.verify import verify
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.task_sources import changes, digests, source_files
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

TASK = '''"""A task."""
import net
from blocks import conv  # a package
train = {"epochs": 3}
def model(data):
    """Build it."""
    return net.Net(data, act="gelu")
'''
ABOVE = """import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import net
"""
STUDY = 'task = "own.py"\n[data]\nsource = "images"\n[sweep]\nworkers = 1\nseed = {}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "here"
    (place / "images").mkdir(parents=True)
    (place / "blocks").mkdir()
    (place / "own.py").write_text(TASK)
    (place / "net.py").write_text("import numpy, os\ndef Net(data, act): return act\n")
    (place / "blocks" / "__init__.py").write_text("")
    (place / "blocks" / "conv.py").write_text(
        "from . import pad\nfrom .inner.deep import x\n"
    )
    (place / "blocks" / "pad.py").write_text("")
    (place / "blocks" / "inner").mkdir()
    (place / "blocks" / "inner" / "deep.py").write_text("x = 1\n")
    (place / "unrelated.py").write_text("")
    return place


def test_a_file_that_changes_its_path_finds_modules_above_it(folder: Path):
    script = folder / "blocks" / "inner" / "train.py"
    script.write_text(ABOVE)
    assert source_files(str(script)) == {
        "train.py": script,
        "net.py": folder / "net.py",
    }
    script.write_text("import net")
    assert set(source_files(str(script))) == {"train.py"}


def made(folder: Path, seed: int = 0) -> StudyFolder:
    """The results, in `studies/s`, of a study of the task file in this folder."""
    text = STUDY.format(seed)
    study = parse_study(text, folder / "study.toml")
    return StudyFolder.create_or_open(
        folder / "studies" / "s", study, expand(study, gpus=0, cores=1), text
    )


def finish(results: StudyFolder, records) -> None:
    for point in results.points():
        results.new_run(point).write_result(records.result(point.name))


def test_the_sources_of_a_task_are_its_file_and_the_local_modules_it_imports(folder):
    assert set(source_files(str(folder / "own.py"))) == {
        "own.py",
        "net.py",
        "blocks/__init__.py",
        "blocks/conv.py",
        "blocks/pad.py",
        "blocks/inner/deep.py",
    }


def test_a_module_outside_the_folder_is_a_source_unless_it_is_installed(
    folder, tmp_path, monkeypatch
):
    library, installed = tmp_path / "library", tmp_path / "lib" / "site-packages"
    target = tmp_path / "target"
    (target / "layers_by_pip-1.0.dist-info").mkdir(parents=True)
    names = (
        (library, "layers_of_mine"),
        (installed, "layers_of_others"),
        (target, "layers_by_pip"),
    )
    for place, name in names:
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.py").write_text("")
        monkeypatch.syspath_prepend(str(place))
    (folder / "net.py").write_text(
        "import layers_of_mine, layers_of_others, layers_by_pip\n"
    )
    found = source_files(str(folder / "own.py"))
    assert found["layers_of_mine.py"] == library / "layers_of_mine.py"
    assert not found.keys() & {"layers_of_others.py", "layers_by_pip.py"}


def test_a_folder_beside_the_task_does_not_hide_an_installed_package(folder):
    (folder / "numpy").mkdir()
    (folder / "numpy" / "setup.py").write_text("")
    assert not any(
        name.startswith("numpy") for name in source_files(str(folder / "own.py"))
    )


def test_a_built_in_task_has_no_sources_and_a_reader_has_its_own(folder):
    assert source_files("cnn") == {}
    assert set(source_files("cnn", str(folder / "net.py"))) == {"read/net.py"}
    assert "read/own.py" not in source_files(
        str(folder / "own.py"), str(folder / "own.py")
    )


def test_comments_docstrings_and_layout_do_not_change_a_source_but_bytes_that_are_not_python_do(
    folder,
):
    before = digests(source_files(str(folder / "own.py")))
    (folder / "own.py").write_text(
        TASK.replace('"""A task."""\n', "# a comment\n")
        .replace('    """Build it."""\n', "")
        .replace(
            'net.Net(data, act="gelu")', "net.Net(\n        data, act='gelu'\n    )"
        )
    )
    assert digests(source_files(str(folder / "own.py"))) == before
    texts = set()
    for text in ("print 1\n", "print 2\n"):
        (folder / "net.py").write_text(text)
        texts.add(digests(source_files(str(folder / "own.py")))["net.py"])
    assert len(texts) == 2


def test_every_python_computes_the_same_digest(folder):
    (folder / "net.py").write_text(
        "import torch\n@torch.jit.ignore\nclass Net(torch.nn.Module):\n"
        "    def forward(self, x: int, *, y=1.5) -> str:\n"
        '        return f"{x!r:>{y}} {y}" if x else lambda: (b"a", -1j, ...)\n'
    )
    assert digests({"net.py": folder / "net.py"}) == {
        "net.py": "e73570cdfaee512a5287eb4c8df81adeda638a25f8708b1937a779368edb3303"
    }


def test_a_change_is_named(folder, tmp_path):
    files = {"own.py": tmp_path / "new.py", "net.py": folder / "net.py"}
    files["own.py"].write_text(TASK.replace("gelu", "relu") + "\nloss = 'mse'\n")
    before = digests({"own.py": folder / "own.py", "gone.py": folder / "unrelated.py"})
    assert list(changes(before, digests(files))) == [
        "gone.py is not imported any more",
        "net.py is not among the sources of its runs",
        "own.py has changed",
    ]


def test_a_finished_run_of_an_edited_task_is_refused_with_what_changed(folder, records):
    results = made(folder)
    finish(results, records)
    (folder / "net.py").write_text(
        "import numpy, os\ndef Net(data, act): return 'relu'\n"
    )
    for seed in (0, 5):  # another point, too, would stand in the same report
        with pytest.raises(UserError) as caught:
            made(folder, seed)
        assert "net.py has changed" in caught.value.received
        assert (
            "--out" in caught.value.action
            and str(results.path / "sources") in caught.value.action
        )
    (folder / "net.py").write_text(
        "import numpy, os\ndef Net(data, act): return act  # as before\n"
    )
    assert made(folder).points() == results.points()


def test_a_task_that_has_failed_can_be_mended(folder, records):
    results = made(folder)
    results.new_run(results.points()[0]).write_failure(records.failure())
    (folder / "net.py").write_text("def Net(data, act): return 'relu'\n")
    mended = made(folder)
    assert mended.points()[0].sources != results.points()[0].sources
    assert (mended.path / "sources" / "net.py").read_text() == (
        folder / "net.py"
    ).read_text()


def test_a_study_keeps_a_copy_of_its_sources_and_goes_on_where_it_was_moved(
    folder, records
):
    results = made(folder)
    finish(results, records)
    copies = results.path / "sources"
    assert (copies / "blocks" / "inner" / "deep.py").read_text() == "x = 1\n"
    moved = folder.rename(folder.parent / "there")
    assert len(made(moved, 0).points()) == 1


def test_a_copy_that_was_altered_is_found(folder, records):
    results = made(folder)
    (results.path / "sources" / "net.py").write_text("altered = 1\n")
    (results.path / "sources" / "own.py").unlink()
    words = {
        file.path: file.word for file in verify(results.path) if "sources" in file.path
    }
    assert (
        words.pop("sources/net.py") == "corrupt"
        and words.pop("sources/own.py") == "missing"
    )
    assert set(words.values()) == {"sound"}


def test_points_of_other_sources_are_other_points(folder):
    first = made(folder).points()[0]
    second = first.model_copy(update={"sources": {"own.py": "0"}})
    assert not first.same_as(second) and first.identity() != second.identity()
