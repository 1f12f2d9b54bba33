"""Sites, points and job scripts for tests."""

from pathlib import Path
from typing import Any

from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.launch.queue.job_script import render_script
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.point_job import JobScript, expand_for, layout
from scalestudy.launch.queue.site_profile import Site

RUN = Path("/studies/s/points/p/run-1")
SCRIPT = Path("/studies/s/jobs/p.sh")
SUBMISSION = "fedcba9876543210"
MARK = f"scalestudy:{SUBMISSION}"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "sites").glob("*.toml"))


def site(**keys: Any) -> Site:
    return Site(**({"name": "here", "cpus_per_node": 8, "exclusive": True} | keys))


def point(strategy: str, workers: int, on: Site, launch: str = "") -> Point:
    text = f'task = "cnn"\n[sweep]\nstrategy = "{strategy}"\nworkers = [{workers}]\nseed = 0\n[launch]\n{launch}'
    return expand_for(parse_study(text, Path("study.toml")), on)[0]


def job(
    strategy: str, workers: int, on: Site, run: Path = RUN, **more: Any
) -> JobScript:
    made = point(strategy, workers, on)
    values = {"submission": SUBMISSION, "python": "/opt/python", "source": None} | more
    return JobScript("s-p", SCRIPT, run, made, layout(made, on), on, **values)


def job_script(made: JobScript) -> str:
    return render_script(made, SLURM.queue)
