"""`scalestudy estimate`, with runs that are made rather than trained."""

import json
from pathlib import Path

import pytest

NETWORK = ("--bandwidth", "1Gbit", "--latency", "50us")


@pytest.fixture
def measured(call, study: Path, launcher) -> Path:
    """The study file, estimated from short runs before anything of the study has run."""
    code, text, errors = call("estimate", study, *NETWORK, "--measure", "--workers", "1,2,4")
    assert code == 0, errors
    assert "native is expected to pay" in text
    return study


def record(study: Path, folder: str = "study") -> dict:
    return json.loads((study.parent / "studies" / folder / "estimate.json").read_text())


def test_without_a_network_it_says_how_to_measure_or_to_state_one(call, study: Path, launcher) -> None:
    code, _, errors = call("estimate", study)
    assert code == 2
    assert "scalestudy check STUDY --submit" in errors and "--bandwidth 100Gbit --latency 2us" in errors


def test_without_runs_it_says_how_to_get_one_and_leaves_nothing(call, study: Path, launcher) -> None:
    code, _, errors = call("estimate", study, *NETWORK)
    assert code == 2
    assert "batch_size = 32" in errors and "--measure" in errors
    assert not (study.parent / "studies").exists()


def test_short_runs_of_one_worker_are_measured_where_there_are_none(call, measured: Path, launcher) -> None:
    assert [(point.workers, point.seed, point.train.epochs) for point in launcher.points] == [(1, 0, 6)]
    assert record(measured, "study-one-worker")["before"] is True
    call("estimate", measured, *NETWORK, "--measure")
    assert len(launcher.points) == 1, "they are not measured again"


def test_short_runs_of_the_study_as_it_was_tell_nothing_of_it_as_it_is(
    call, measured: Path, launcher
) -> None:
    text = measured.read_text()
    measured.write_text(f"{text}[data]\nimage_size = [12, 12]\n")
    code, _, errors = call("estimate", measured, *NETWORK)
    said = " ".join(errors.split())
    assert code == 2 and "study-one-worker, of another study: data.image_size is" in said
    code, _, errors = call("estimate", measured, *NETWORK, "--measure")
    said = " ".join(errors.split())
    assert code == 2 and "Remove" in said and "study-one-worker: its short runs" in said
    measured.write_text(text.replace("[train]", "[train]\nepochs = 30"))
    assert call("estimate", measured, *NETWORK)[0] == 0, "that of more epochs needs no more than fewer"


def test_the_study_runs_in_its_own_folder_after_an_estimate(call, measured: Path, launcher) -> None:
    assert call("run", measured, "--no-report")[0] == 0
    assert sorted(launcher.ran[1:]) == ["native-w1-s0", "native-w2-s0"]


def test_an_estimate_from_before_is_kept_and_the_report_says_how_far_it_was_off(
    call, measured: Path, launcher
) -> None:
    before = record(measured, "study-one-worker")
    call("run", measured, "--no-report")
    code, _, errors = call("estimate", measured, *NETWORK)
    assert code == 0
    assert "stays the one made" in errors and "before any run with more than one worker" in errors
    assert record(measured, "study-one-worker") == before
    assert not (measured.parent / "studies" / "study" / "estimate.json").exists()
    text = " ".join(call("report", measured.parent / "studies" / "study", "--verbose")[1].split())
    assert "Predicted and measured" in text and "before any run with more than one worker" in text
    assert "native on 2 workers took" in text


def test_one_made_later_says_so_and_gives_way_to_the_next(call, folder_of_runs: Path, study: Path) -> None:
    assert call("estimate", folder_of_runs, *NETWORK)[0] == 0
    assert record(study)["before"] is False
    code, _, errors = call("estimate", folder_of_runs, *NETWORK, "--workers", "1,8")
    assert code == 0 and errors == ""
    assert [each["workers"] for each in record(study)["series"][0]["points"]] == [1, 8]


def test_it_comes_as_table_json_markdown_and_html(call, folder_of_runs: Path, tmp_path: Path) -> None:
    record_ = json.loads(call("estimate", folder_of_runs, *NETWORK, "--format", "json", "--charge", "2")[1])
    assert [point["workers"] for point in record_["series"][0]["points"]][-1] == 4096
    assert record_["series"][0]["points"][0]["charge"]["value"] > 0
    markdown = call("estimate", folder_of_runs, *NETWORK, "--format", "markdown")[1]
    assert markdown.startswith("# Expected scaling of study") and "| 4096 |" in markdown
    page = tmp_path / "page.html"
    code, text, _ = call("estimate", folder_of_runs, *NETWORK, "--format", "html", "--out", page)
    assert code == 0 and f"Wrote {page}" in text
    assert "What it rests on" in page.read_text()


def timings(path: Path, collective: str = "auto") -> Path:
    rows = [
        {"collective": collective, "ranks": 2, "bytes": size, "seconds": 1e-4 + size / 1e9, "hosts": 2}
        for size in (1024, 2**20, 2**24)
    ]
    path.write_text(json.dumps({"schema_version": 2, "lines": [], "bandwidth": rows}))
    return path


def test_a_checks_timings_are_the_network(call, folder_of_runs: Path, study: Path, tmp_path: Path) -> None:
    file = timings(tmp_path / "check.json")
    assert call("estimate", folder_of_runs, "--from-check", file)[0] == 0
    links = {each["name"]: each for each in record(study)["series"][0]["assumptions"]}
    assert links["between nodes"]["measured"] and links["between nodes"]["because"] == "check.json"


def test_a_topologys_timings_are_a_nodes_links(
    call, folder_of_runs: Path, study: Path, tmp_path: Path
) -> None:
    rows = [
        {"collective": "TensorFlow RING", "ranks": 2, "bytes": size, "seconds": 1e-4 + size / 1e9}
        for size in (1024, 2**20, 2**24)
    ]
    (tmp_path / "topology.json").write_text(json.dumps({"all_reduce": rows}))
    code, _, errors = call(
        "estimate", folder_of_runs, "--from-check", tmp_path / "topology.json", "--per-node", "2"
    )
    assert code == 0, errors
    links = {each["name"]: each for each in record(study)["series"][0]["assumptions"]}
    assert links["within a node"]["measured"] and links["between nodes"]["value"] == "as within a node"


def test_a_collective_that_no_check_has_timed_is_named(call, folder_of_runs: Path, tmp_path: Path) -> None:
    file = timings(tmp_path / "check.json", "horovod-gloo")
    code, _, errors = call("estimate", folder_of_runs, "--from-check", file)
    assert code == 2 and "no check has timed it" in errors


def test_a_site_states_its_network(call, folder_of_runs: Path, study: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(
        'cpus_per_node = 8\ntasks_per_node = 4\nnetwork_bandwidth = "100Gbit"\nnetwork_latency = "2us"\n'
    )
    assert call("estimate", folder_of_runs, "--site", site)[0] == 0
    assert record(study)["per_node"] == 4
    site.write_text("cpus_per_node = 8\n")
    code, _, errors = call("estimate", folder_of_runs, "--site", site)
    assert code == 2 and "a site profile (site) that states none" in errors


def test_the_studys_own_site_states_it_where_nothing_else_does(call, write_study, launcher, tmp_path) -> None:
    (tmp_path / "own.toml").write_text(
        'cpus_per_node = 8\nnetwork_bandwidth = "100Gbit"\nnetwork_latency = "2us"\n'
    )
    text = 'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = 2\n'
    study = write_study(text + '[launch]\non = "slurm"\nsite = "own.toml"\n')
    output = tmp_path / "estimate.json"
    code, _, errors = call("estimate", study, "--measure", "--format", "json", "--out", output)
    assert code == 0, errors
    links = {each["name"]: each for each in json.loads(output.read_text())["series"][0]["assumptions"]}
    assert links["between nodes"]["because"] == "stated by the site profile own"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--bandwidth", "fast", "--latency", "2us"), '"100Gbit"'),
        (("--bandwidth", "1Gbit"), "--bandwidth and --latency together"),
        ((*NETWORK, "--workers", "1,two"), "--workers 1,2,4,4096"),
        ((*NETWORK, "--workers", "0"), "numbers of workers from 1"),
        ((*NETWORK, "--format", "pdf"), "table, json, markdown, html"),
        ((*NETWORK, "--algorithm", "star"), "hierarchical"),
        ((*NETWORK, "--storage-bandwidth", "much"), "--storage-bandwidth"),
        (("--from-check", "nothing.json"), "nothing.json: No such file"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_do(call, folder_of_runs: Path, options, said) -> None:
    code, _, errors = call("estimate", folder_of_runs, *options)
    assert code == 2
    assert said in " ".join(errors.split())


def test_a_check_without_timings_is_refused(call, folder_of_runs: Path, tmp_path: Path) -> None:
    (tmp_path / "check.json").write_text(json.dumps({"lines": [], "bandwidth": []}))
    code, _, errors = call("estimate", folder_of_runs, "--from-check", tmp_path / "check.json")
    assert code == 2 and "all-reduces were timed" in errors


def test_measuring_needs_the_study_file(call, study: Path, folder, launcher) -> None:
    code, _, errors = call("estimate", folder.path, *NETWORK, "--measure")
    assert code == 2 and "a study file for --measure" in errors


def test_where_it_cannot_be_kept_it_is_shown_all_the_same(call, folder_of_runs: Path) -> None:
    (folder_of_runs / "estimate.json").mkdir()  # as a folder of somebody else's would
    code, text, errors = call("estimate", folder_of_runs, *NETWORK)
    assert code == 0 and "native is expected to pay" in text
    assert "Is a directory" in " ".join(errors.split())


def test_verify_reads_the_estimate_too(call, folder_of_runs: Path) -> None:
    from scalestudy.app.verify import verify

    call("estimate", folder_of_runs, *NETWORK)
    file = folder_of_runs / "estimate.json"
    assert {each.path: each.word for each in verify(folder_of_runs)}["estimate.json"] == "sound"
    file.write_text(file.read_text()[:100])
    assert {each.path: each.word for each in verify(folder_of_runs)}["estimate.json"] == "corrupt"
