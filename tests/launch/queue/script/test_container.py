"""The exact words that run a worker in a container."""

from pathlib import Path

import pytest

from scalestudy.errors import UserError
from scalestudy.launch.queue.script import container_exports, container_words, srun_words
from scalestudy.launch.queue.site import Container

STUDY, DATA = Path("/work/me/studies/s"), Path("/data/sets")


def words(binds=(STUDY, DATA), gpus=True, **keys):
    return " ".join(container_words(Container(image="/images/a.sif", **keys), binds, gpus=gpus))


def test_apptainer_sees_the_gpus_and_the_studys_folders():
    assert words() == (
        "apptainer exec --nv "
        '--mount \'type=bind,"source=/work/me/studies/s","destination=/work/me/studies/s"\' '
        '--mount \'type=bind,"source=/data/sets","destination=/data/sets"\' '
        '--pwd "$run" /images/a.sif'
    )


def test_singularity_with_overlays_and_binds_of_the_site():
    container = Container(
        image="$IMAGES/a.sif", runtime="singularity", binds=("$SCRATCH:/scratch",),
        overlay=("/o.ext3:ro", "$SCRATCH/p.sqf:ro"),
    )  # fmt: skip
    found = " ".join(container_words(container, [], gpus=True))
    assert found == (
        'singularity exec --nv --bind "$SCRATCH:/scratch" --overlay /o.ext3:ro '
        '--overlay "$SCRATCH/p.sqf:ro" --pwd "$run" "$IMAGES/a.sif"'
    )


@pytest.mark.parametrize("keys", [{"gpus": False}, {"gpu": "none"}])
def test_no_driver_is_brought_in_where_nothing_computes_on_gpus(keys):
    assert words(binds=(), **keys) == 'apptainer exec --pwd "$run" /images/a.sif'


def test_apptainer_takes_paths_with_commas_colons_and_quotes():
    assert words(binds=(Path('/a,b:c "d"/$e'),), gpus=False) == (
        'apptainer exec --mount "type=bind,\\"source=/a,b:c \\"\\"d\\"\\"/\\$e\\",'
        '\\"destination=/a,b:c \\"\\"d\\"\\"/\\$e\\"" --pwd "$run" /images/a.sif'
    )


def test_charliecloud_binds_the_topmost_folders_since_it_makes_none_in_an_image():
    binds = (STUDY, Path("/work/me/cache"), DATA, Path("/tmp/me/s"), Path("/opt/tools/src"))
    assert words(binds=binds, runtime="charliecloud") == (
        'ch-run --cd "$run" --bind /work --bind /data --bind /opt/tools/src /images/a.sif --'
    )


def test_charliecloud_does_not_bind_twice_what_the_site_binds():
    container = Container(image="/i", runtime="charliecloud", binds=("/work", "/x:/y"))
    assert " ".join(container_words(container, [STUDY], gpus=False)) == (
        'ch-run --cd "$run" --bind /work --bind /x:/y /i --'
    )


def test_charliecloud_cannot_bind_a_path_with_a_colon():
    with pytest.raises(UserError, match="colon"):
        words(binds=(Path("/opt/a:b"),), runtime="charliecloud")


@pytest.mark.parametrize(
    ("cache", "scratch", "found"),
    [
        ("$SCRATCH/c", "/s", '"$SCRATCH/c"'),
        (None, "/s", "/s/apptainer"),
        (None, None, '"$run/.apptainer"'),
    ],
)
def test_the_cache_is_never_in_the_home_folder(cache, scratch, found):
    assert container_exports(Container(image="/i", cache=cache), scratch, gpus=True) == {
        "APPTAINER_CACHEDIR": found
    }


def test_each_runtime_reads_a_variable_of_its_own():
    assert set(container_exports(Container(image="/i", runtime="singularity"), None, gpus=True)) == {
        "SINGULARITY_CACHEDIR"
    }
    assert container_exports(Container(image="/i", runtime="charliecloud"), "/s", gpus=True) == {}


PYXIS = Container(image="$IMAGES/a b.sqsh", runtime="pyxis", binds=("$SCRATCH", "/x:/y"))


def test_under_pyxis_srun_enters_the_container_and_the_command_itself_does_not():
    assert container_words(PYXIS, [STUDY], gpus=True) == []
    assert srun_words(PYXIS, [STUDY, DATA]) == [
        '--container-image="$IMAGES/a b.sqsh"',
        '--container-mounts="$SCRATCH:$SCRATCH",/x:/y,/work/me/studies/s:/work/me/studies/s,/data/sets:/data/sets',
        '--container-workdir="$run"',
    ]
    assert srun_words(Container(image="/a.sif"), [STUDY]) == srun_words(None, [STUDY]) == []


@pytest.mark.parametrize("path", ["/a:b", "/a,b"])
def test_pyxis_cannot_bind_a_path_with_a_colon_or_a_comma(path):
    with pytest.raises(UserError, match="commas and colons"):
        srun_words(PYXIS, [Path(path)])


@pytest.mark.parametrize(
    ("gpus", "gpu", "devices"), [(True, "nv", "all"), (False, "nv", "void"), (True, "none", "void")]
)
def test_pyxis_brings_the_driver_in_for_jobs_with_gpus_alone(gpus, gpu, devices):
    container = Container(image="/i", runtime="pyxis", gpu=gpu)
    assert container_exports(container, "/s", gpus=gpus)["NVIDIA_VISIBLE_DEVICES"] == devices
