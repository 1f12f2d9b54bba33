"""Each GPU belongs to one run; other runs take the remaining GPUs, or wait and name the holder."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from fake_nvml import Card, cards, written
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch import reserve
from scalestudy.launch.launcher import Note, Options
from scalestudy.launch.launchers import LOCAL
from scalestudy.launch.local_run import run_steps
from scalestudy.launch.reserve import cores_near, reserve_gpus, run_cores
from scalestudy.store.study_folder import StudyFolder


def test_two_runs_get_different_ports_which_are_free_again_after_them():
    with reserve.ports(3) as first, reserve.ports(3) as second:
        assert not set(range(first, first + 3)) & set(range(second, second + 3))
    with reserve.ports(3) as again:
        assert again == first


def test_a_port_that_somebody_listens_at_is_not_given():
    with reserve.ports(1) as taken:
        pass
    with socket.socket() as listener:
        listener.bind(("", taken))
        listener.listen()
        with reserve.ports(1) as other:
            assert other != taken


def test_a_reservation_holds_against_other_processes_and_ends_with_its_owner():
    program = (
        "from scalestudy.launch import reserve\n"
        "with reserve.cores([0, 1], 2) as (cores, alone):\n"
        "    print(alone, flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline().strip() in ("True", "False")
        with reserve.cores([0, 1], 1) as (_, alone):
            assert not alone
        other.kill()
    with reserve.cores([1000, 1001], 1) as (cores, alone):
        assert (cores, alone) == ([1000], True)


@pytest.mark.parametrize(
    ("wanted", "cores"),
    [(1, [2000]), (2, [2000, 2001]), (5, [2000, 2001, 2000, 2001, 2000])],
)
def test_cores_are_handed_out_twice_only_when_there_are_too_few(wanted, cores):
    with reserve.cores([2000, 2001], wanted) as (given, alone):
        assert given == cores
        assert alone == (wanted <= 2)


def test_a_second_study_takes_the_cores_that_are_left():
    with (
        reserve.cores([3000, 3001], 1) as (first, _),
        reserve.cores([3000, 3001], 1) as (second, alone),
    ):
        assert (first, second, alone) == ([3000], [3001], True)


def test_each_gpu_has_cores_near_it():
    with cores_near(range(4000, 4008), [range(4004, 4008), range(4000, 4004)], 2) as (
        cores,
        alone,
    ):
        assert (cores, alone) == ([4004, 4005, 4000, 4001], True)


def test_where_another_study_has_the_near_ones_a_gpu_takes_others_and_leaves_the_next_gpus_alone():
    near = [range(4104, 4107), range(4100, 4104)]
    with (
        reserve.cores([4104, 4105], 2),
        cores_near(range(4100, 4107), near, 2) as (cores, alone),
    ):
        assert (cores, alone) == ([4106, 4102, 4100, 4101], True)


def test_a_gpu_without_enough_free_cores_shares_them():
    near = [[4200, 4201]]
    with reserve.cores([4200], 1), cores_near([4200, 4201], near, 2) as (cores, alone):
        assert (sorted(cores), alone) == ([4200, 4201], False)


SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("scalestudy.launch.reserve.TRY_EVERY", 0.001)


def point(workers=1, strategy="horovod", device="auto", gpus=8):
    text = (
        f'task = "cnn"\n[launch]\ndevice = "{device}"\n'
        f'[sweep]\nstrategy = ["{strategy}"]\nworkers = {workers}\nseed = 0\n'
    )
    return expand(parse_study(text, Path("mine.toml")), gpus=gpus, cores=64)[0]


def test_workers_have_cores_of_their_own(monkeypatch):
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: list(range(8)))
    with run_cores(4, 1, None) as (cpus, alone):
        assert (cpus, alone) == ([0, 1, 2, 3], True)


def taken(held, wanted):
    """Return the UUIDs that are reserved without waiting."""
    with pytest.raises(StopIteration) as end:
        next(reserve_gpus(held, wanted))
    return end.value.value


def test_a_second_study_takes_the_gpus_that_are_left(nvml):
    nvml(*cards(4))
    with ExitStack() as one, ExitStack() as two:
        assert taken(one, point(2)) == ["GPU-a0", "GPU-b1"]
        assert taken(two, point(2)) == ["GPU-c2", "GPU-d3"]
    with ExitStack() as again:
        assert taken(again, point(1)) == ["GPU-a0"]


def test_who_finds_too_few_takes_none_and_waits_and_names_them(nvml):
    nvml(*cards(3))
    with ExitStack() as two:
        with ExitStack() as one:
            taken(one, point(2))
            waiting = reserve_gpus(two, point(2))
            text = next(waiting).text
            assert (
                text
                == "horovod-w2-s0 waits for 2 GPUs at once: other runs hold GPU-a0, GPU-b1."
            )
            with ExitStack() as third:
                assert taken(third, point(1)) == ["GPU-c2"]
        with pytest.raises(StopIteration) as end:
            next(waiting)
        assert end.value.value == ["GPU-a0", "GPU-b1"]


DIVIDED = Card("GPU-x", instances=[Card("MIG-1"), Card("MIG-2")])


@pytest.mark.parametrize(
    ("machine", "shown", "wanted", "own"),
    [
        (cards(3), "2", point(), ["GPU-c2"]),  # the others are hidden
        (cards(2), None, point(16, "virtual"), ["GPU-a0"]),
        ([DIVIDED, *cards(2)], None, point(), ["GPU-a0"]),  # full GPUs before instances
        ([DIVIDED, *cards(2)], None, point(2, "mirrored"), ["GPU-a0", "GPU-b1"]),
        (cards(2), None, point(2, device="cpu"), []),
        (cards(0), None, point(2), []),
        (cards(1), None, point(2), []),
    ],
)
def test_a_run_takes_the_gpus_that_it_needs_and_may_see(
    nvml, monkeypatch, machine, shown, wanted, own
):
    nvml(*machine)
    if shown:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    with ExitStack() as held:
        assert taken(held, wanted) == own


def test_a_reservation_ends_with_its_process_however_that_ends(nvml, tmp_path):
    program = (
        "import sys; from contextlib import ExitStack; from pathlib import Path\n"
        "from scalestudy.launch.reserve import reserve_gpus\n"
        "from scalestudy.config.point import Point\n"
        "with ExitStack() as held:\n"
        "    try:\n"
        "        next(reserve_gpus(held, Point.model_validate_json(sys.argv[1])))\n"
        "    except StopIteration as end:\n"
        "        print(end.value, flush=True); input()\n"
    )
    paths = [
        written(tmp_path / "nvml", cards(1)),
        str(SOURCE),
        os.environ.get("PYTHONPATH", ""),
    ]
    nvml(*cards(1))
    with (
        subprocess.Popen(
            [sys.executable, "-c", program, point().model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        ) as other,
        ExitStack() as held,
    ):
        assert other.stdout.readline().strip() == "['GPU-a0']"
        waiting = reserve_gpus(held, point())
        assert "other runs hold GPU-a0" in next(waiting).text
        other.kill()
        other.wait()
        with pytest.raises(StopIteration):
            next(waiting)


@pytest.fixture
def given(monkeypatch):
    """The variables of workers, none of which starts; a job around the run has promised them eight GPUs."""
    told = []

    def command(run, rank, size, port, cpus, environment):
        told.append(environment)
        raise OSError("enough")

    monkeypatch.setattr("scalestudy.launch.worker_processes.worker_command", command)
    monkeypatch.setenv("SCALESTUDY_GPUS", "8")
    return told


@pytest.fixture
def folder(tmp_path):
    wanted = point()
    study = parse_study(
        'task = "cnn"\n[sweep]\nstrategy = ["horovod"]\nworkers = 1\nseed = 0\n',
        Path("mine.toml"),
    )
    return StudyFolder.create_or_open(tmp_path / "results", study, [wanted], "")


def test_workers_see_the_reserved_gpus_and_are_held_to_them_and_a_launcher_tells_whom_it_waits_for(
    nvml, folder, given
):
    nvml(*cards(2))
    with ExitStack() as one:
        taken(one, point(1))
        list(run_steps(folder, folder.points()[0]))
        (variables,) = given
        assert (
            variables["CUDA_VISIBLE_DEVICES"]
            == variables["SCALESTUDY_GPUS"]
            == "GPU-b1"
        )
        assert variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        with ExitStack() as two:
            taken(two, point(1))
            steps = LOCAL.start(folder, folder.points(), Options())
            note = next(steps)
            assert isinstance(note, Note) and "other runs hold GPU-a0" in note.text
            steps.close()


def test_on_cpus_workers_are_promised_nothing(nvml, folder, given):
    nvml()
    list(run_steps(folder, folder.points()[0]))
    assert not {"SCALESTUDY_GPUS", "CUDA_VISIBLE_DEVICES"} & given[0].keys()
