"""Site profiles are found, read, and refused with the line number."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.keys import SITE_KEYS
from scalestudy.config.parse import parse_study
from scalestudy.launch.queue.site_profile import (
    Site,
    billing_unit,
    find_site,
    list_sites,
    load_site,
    notation,
    seconds,
)
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError
from sites import EXAMPLES


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's site profiles."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", "/people/me")
    monkeypatch.delenv("SCRATCH", raising=False)
    place = tmp_path / "config" / "scalestudy" / "sites"
    place.mkdir(parents=True)
    return place


def written(folder: Path, text: str, name: str = "here") -> Path:
    path = folder / f"{name}.toml"
    path.write_text("cpus_per_node = 8\n" + text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        load_site(written(folder, text))
    return str(caught.value)


def test_a_profile_is_found_by_its_name(folder):
    written(folder, 'partition = "gpu"')
    assert find_site("here", Path()) == Site(
        name="here", cpus_per_node=8, partition="gpu"
    )


def test_a_profile_is_found_by_its_path_from_the_studys_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", "")
    assert find_site("sub/here.toml", tmp_path).name == "here"
    assert find_site("here.toml", tmp_path / "sub").name == "here"


@pytest.mark.parametrize(
    ("launch", "unit"),
    [
        ("", None),
        ('[launch]\non = "slurm"\nsite = "nodes"', "node"),
        ('[launch]\non = "slurm"\nsite = "plain"', "worker"),
        ('[launch]\non = "slurm"\nsite = "./nodes.toml"', "gpu"),
        ('[launch]\non = "slurm"\nsite = "elsewhere"', None),
    ],
)
def test_the_billing_unit_of_a_study_is_that_of_its_site(
    folder, tmp_path, launch, unit
):
    written(folder, 'bill = "node"', "nodes")
    written(folder, "", "plain")
    written(tmp_path, 'bill = "gpu"', "nodes")
    text = f'task = "cnn"\n{launch}'
    study = parse_study(text, Path("study.toml"))
    assert (
        billing_unit(
            StudyFolder.create_or_open(tmp_path / "studies" / "s", study, [], text)
        )
        == unit
    )


def test_without_a_name_the_only_profile_is_taken(folder):
    written(folder, "")
    assert find_site(None, Path()).name == "here"


def test_without_a_name_and_with_two_or_none_to_choose_from_it_is_asked_for(folder):
    with pytest.raises(UserError, match=r"none in .*sites"):
        find_site(None, Path())
    written(folder, "", "one")
    written(folder, "", "two")
    assert list_sites() == ["one", "two"]
    with pytest.raises(UserError, match="one, two"):
        find_site(None, Path())


def test_a_name_that_is_nearly_right_is_corrected(folder):
    written(folder, "", "cluster")
    with pytest.raises(UserError, match='Did you mean "cluster"'):
        find_site("clustre", Path())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "\npartitoin = 'x'",
            ("`partitoin` (here.toml, line 3)", "Did you mean `partition`?"),
        ),
        (
            "[container]\nimage = 'a'\nbind = 'b'",
            ("`bind` (here.toml, line 4)", "`binds`"),
        ),
        (
            "gpus_per_node = '2'",
            ("a valid integer for gpus_per_node", '"2" (here.toml, line 2)'),
        ),
        ("modules = 'x'", ("a list of strings for modules", "line 2")),
        ("env = 'x'", ("a table of strings for env", "line 2")),
        ("time_limit = '1h'", ('"1:30:00"', '"1h" (here.toml, line 2)')),
        ("memory_per_node = '180 GB/s'", ("an amount of memory", "line 2")),
        ('gpu_request = "--gres=gpu:{gpus}\\nrm -rf ~"', ("{gpus}", "line 2")),
        ("gpu_request = '--gpus={gpus} --array=0-9'", ("{gpus}", "line 2")),
        ('partition = "a\\u0085#SBATCH"', ("one line", "line 2")),
        ('modules = ["a\\nid"]', ("one line", "line 2")),
        ("launcher = 'srun; id'", ("without shell commands", "line 2")),
        (
            'launcher = "mpirun -np 4"',
            ("mpirun without numbers of nodes and processes", "line 2"),
        ),
        ("launcher = '$(id)'", ("without shell commands", "line 2")),
        ('launcher = "srun\\nid"', ("without shell commands", "line 2")),
        ('scratch = "/a\\u0000"', ("null character", "here.toml")),
        ("gpu_request = '--gpus={n}'", ("{gpus}", "line 2")),
        ("directives = ['exclusive']", ("options of sbatch", "line 2")),
        ('directives = ["--a\\nrm -rf"]', ("one line", "line 2")),
        ("[env]\n'A B' = 'x'", ("names of variables", "line 2")),
        ("container = 'docker://tensorflow'", ("jobs do not download", "line 2")),
        ("[container]\nruntime = 'apptainer'", ("container.image", "line 2")),
        (
            "[container]\nimage = 'x'\nruntime = 'docker'",
            ("'singularity'", "here.toml"),
        ),
        (
            "environment = 'a'\ncontainer = 'b'",
            ("an environment or a container", "here.toml"),
        ),
        ("gpus_per_node = -1", ("greater than or equal to 0", "line 2")),
        ("partition = ", ("valid TOML", "line 2")),
    ],
)
def test_what_is_wrong_is_named_with_its_line(folder, text, told):
    message = refusal(folder, text)
    for part in told:
        assert part in message


def test_the_cores_of_a_node_must_be_given(folder):
    (folder / "here.toml").write_text("partition = 'x'")
    with pytest.raises(UserError, match="cpus_per_node in a site profile"):
        find_site("here", Path())


def test_a_container_is_a_path_or_a_table(folder):
    assert (
        load_site(written(folder, "container = '/a.sif'")).container.image == "/a.sif"
    )
    table = load_site(
        written(folder, "[container]\nimage = '/a.sif'\nbinds = ['/b']")
    ).container
    assert (table.image, table.binds) == ("/a.sif", ("/b",))


def test_paths_are_put_in_where_they_are_known_and_left_to_the_nodes_where_not(
    folder, monkeypatch
):
    monkeypatch.setenv("IMAGES", "/images/of $ me")
    text = "scratch = '~/$SLURM_JOB_ID'\n[container]\nimage = '$IMAGES/a.sif'\nbinds = ['~/b:/c', '$SCRATCH']"
    site = load_site(written(folder, text))
    assert site.scratch == "/people/me/$SLURM_JOB_ID"
    assert site.container.image == "/images/of $$ me/a.sif"
    assert site.container.binds == ("/people/me/b:/c", "$SCRATCH")
    assert (
        load_site(written(folder, "environment = '$SCRATCH/venv'")).environment
        == "$SCRATCH/venv"
    )


def test_relative_paths_are_seen_from_the_profiles_folder(folder):
    assert load_site(written(folder, "environment = '../venv'")).environment == str(
        folder.parent / "venv"
    )
    assert load_site(written(folder, "container = 'a.sif'")).container.image == str(
        folder / "a.sif"
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_read(path):
    site = find_site(str(path), Path())
    assert site.name == path.stem
    assert site.cpus_per_node >= 24


@given(st.integers(1, 10**7).map(lambda minutes: 60 * minutes))
def test_whole_minutes_are_written_as_they_are_read(total):
    assert seconds(notation(total)) == total


@given(st.integers(1, 10**7))
def test_a_limit_is_never_written_shorter_than_it_is(total):
    assert total <= seconds(notation(total)) < total + 60


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        ("90:30", 90.5),
        ("30:00", 30),
        ("1:30:00", 90),
        ("100:00:00", 6000),
        ("2-12", 3600),
        ("2-12:30", 3630),
        ("2-12:30:15", 3630.25),
        ("0-1", 60),
        (" 00:10:00 ", 10),
    ],
)
def test_times_are_read_as_slurm_takes_them(text, minutes):
    assert seconds(text) == 60 * minutes


@pytest.mark.parametrize("text", ["infinite", "INFINITE", "UNLIMITED", "-1"])
def test_no_limit_has_words_of_its_own(text):
    assert seconds(text) is None
    assert notation(None) == "UNLIMITED"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "00:00:00",
        "1:60:00",
        "1:00:60",
        "2-",
        "-2",
        "1:2:3",
        "1:00:0x",
        "1h",
        "२",
        "1-1-1",
    ],
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="as Slurm writes it"):
        seconds(text)


def test_the_study_file_knows_which_keys_belong_in_a_site_profile():
    assert {"name", *SITE_KEYS} == set(Site.model_fields)
