"""A study on a test cluster: submit, watch and cancel it; small stand-ins replace the workers."""

import json
import os
import sys
from unittest.mock import patch

from paths import SUPPORT
from scalestudy.launch.study_status import study_status
from scalestudy.store.study_folder import StudyFolder

WORKERS = SUPPORT / "workers.py"


class ClusterStudy:
    """A folder with a study file, its site profile, and the plan of the workers."""

    def __init__(self, cluster, name: str, *, account: str | None = "research") -> None:
        self.cluster = cluster
        self.path = cluster.folder(name)
        self.results = self.path / "results"
        self.site(account=account) if account else self.site()
        self.study()
        (self.path / "data").mkdir()

    def site(self, **keys: object) -> None:
        table = {
            "cpus_per_node": 4,
            "exclusive": True,
            "time_limit": "00:05:00",
            "memory_per_node": "500M",
            "wrapper": [sys.executable, str(WORKERS)],
        } | keys
        (self.path / "here.toml").write_text(
            "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        )

    def study(
        self, workers: object = (1,), seed: object = (0, 1), more: str = ""
    ) -> None:
        (self.path / "study.toml").write_text(
            f'task = "cnn"\n[data]\nsource = "digits"\ncache = "{self.cluster.root}/cache"\n'
            f"[sweep]\nworkers = {list(workers)}\nseed = {list(seed)}\n"
            f'[launch]\non = "slurm"\nsite = "here.toml"\n{more}'
        )

    def plan(self, **plans: dict) -> None:
        """Set the plan for workers that start from now on; renamed, because a worker may be reading it."""
        text = json.dumps(
            {
                "*" if name == "all" else name.replace("_", "-"): plan
                for name, plan in plans.items()
            }
        )
        (self.path / "plan.new").write_text(text)
        (self.path / "plan.new").rename(self.path / "plan.json")

    def go(self) -> None:
        """Let workers that hold continue."""
        (self.path / "go").touch()

    def __call__(self, command: str, *arguments: object, check: bool = True) -> str:
        first = "study.toml" if command in ("submit", "run") else "results"
        more = ("--out", "results") if command in ("submit", "run") else ()
        return self.cluster.scalestudy(
            command, first, *arguments, *more, check=check, cwd=self.path
        ).stdout

    def code(self, command: str, *arguments: object) -> tuple[int, str]:
        first = "study.toml" if command in ("submit", "run") else "results"
        more = ("--out", "results") if command in ("submit", "run") else ()
        done = self.cluster.scalestudy(
            command, first, *arguments, *more, check=False, cwd=self.path
        )
        return done.returncode, done.stdout

    def states(self) -> dict[str, str]:
        """States as reported by `status`, without starting a process for each call."""
        folder = StudyFolder.open(self.results)
        with patch.dict(os.environ, self.cluster.env, clear=True):
            return study_status(folder).states

    def wait(self, *states: str) -> None:
        """Wait until all points are in these states."""
        self.cluster.wait_for(
            lambda: set(self.states().values()) <= set(states), f"{states}"
        )

    def wait_for_work(self, point: str) -> None:
        """Wait until the worker of its latest job trains; the job runs some time before the worker starts."""

        def at_work() -> bool:
            run = StudyFolder.open(self.results).runs(point)[-1]
            job, progress = run.job(), run.progress()
            if job is None or progress is None or self.states()[point] != "running":
                return False
            # A run that goes on still holds what the worker of an earlier job wrote.
            return progress.updated > job.submitted

        self.cluster.wait_for(at_work, f"{point} at work")

    def job(self, point: str) -> str:
        job = StudyFolder.open(self.results).runs(point)[-1].job()
        assert job is not None
        return job.job
