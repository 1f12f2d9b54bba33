"""The GPU variables that Slurm gives to tasks, for each way to distribute GPUs.

To capture them again: `REWRITE=1 pytest tests/slurm/test_gpu_layouts.py`.
"""

import json
import os
import sys
from pathlib import Path

CAPTURED = Path(__file__).parents[1] / "cluster" / "captured_gpus.json"
KEYS = [
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "SLURMD_NODENAME",
    "SLURM_DISTRIBUTION",
    "SLURM_GPUS_ON_NODE",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_NODELIST",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "SLURM_STEP_GPUS",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
]
"""Variables that determine placements and GPUs; tests/cluster/test_gpu_layouts.py relies on them."""
TELL = f"import json, os; print(json.dumps({{k: os.environ[k] for k in {json.dumps(KEYS)} if k in os.environ}}))"


def test_slurm_tells_tasks_of_their_gpus_as_it_did_when_that_was_captured(cluster):
    captured = json.loads(CAPTURED.read_text())
    folder = cluster.folder("layouts")
    srun = "srun -N2 -n4 --ntasks-per-node=2 --distribution=block:block --mpi=none"
    layout = ("-N2", "-n4", "--ntasks-per-node=2", "--gres=gpu:2", "-w", "node1,node2")
    job = cluster.sbatch(
        *layout,
        f"--output={folder}/job.log",
        script="".join(
            f"{srun} {options} {sys.executable} -c '{TELL}' >{folder}/{number}\n"
            for number, options in enumerate(captured)
        ),
    )
    cluster.wait_for(lambda: cluster.states(job) == ["COMPLETED"], "all layouts")
    told = {
        options: _tasks(folder / str(number)) for number, options in enumerate(captured)
    }
    if "REWRITE" in os.environ:
        CAPTURED.write_text(json.dumps(told, indent=1) + "\n")
    assert told == captured


def _tasks(file: Path) -> list[dict[str, str]]:
    """Return the variables that tasks recorded, with fixed job and step numbers."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    own = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"}
    return sorted(
        (own | line for line in lines), key=lambda line: int(line["SLURM_PROCID"])
    )
