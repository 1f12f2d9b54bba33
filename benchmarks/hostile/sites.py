"""Site profiles and templates of job scripts."""

import os
import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hostile.case import Case
from hostile.study_files import damaged

STUDY = (
    'task = "cnn"\n[data]\nsource = "digits"\ncache = "cache"\n[sweep]\nworkers = [1, 2]\nseed = 0\n'
    '[launch]\non = "slurm"\nsite = "here.toml"\n'
)
GOOD = b'cpus_per_node = 4\npartition = "main"\ntime_limit = "01:00:00"\nmodules = ["a", "b"]\n'
LINES = (
    "cpus_per_node = 0",
    "cpus_per_node = 10000000000",
    "cpus_per_node = inf",
    'cpus_per_node = "4"',
    "cpus_per_node = [4]",
    "cpus_per_node = 1979-05-27",
    "gpus_per_node = -1",
    "gpus_per_node = 1000000",
    "tasks_per_node = 0",
    'time_limit = "forever"',
    'time_limit = "99999999999999:00:00"',
    'time_limit = ""',
    'time_limit = "-1:00:00"',
    'time_limit = "1e9"',
    "time_limit = 5",
    'time_limit_minimum = "x"',
    'gpu_request = "x"',
    'gpu_request = "{gpus} {x}"',
    'directives = ["x"]',
    'directives = ["--a\\nrm"]',
    'partition = "a\\nb"',
    'partition = ""',
    "partition = 5",
    'env = { "a b" = "c" }',
    "env = { a = 5 }",
    "env = []",
    'container = "docker://x"',
    'container = ""',
    "container = 5",
    'container = { image = "x", nonsense = 1 }',
    'container = { runtime = "apptainer" }',
    "environment = []",
    'environment = "a"\ncontainer = "b"',
    "nonsense = 1",
    "name = 5",
    "modules = 5",
    'modules = "a"',
    f"modules = {'[' * 2000}{']' * 2000}",
    'time_limit_scaling = "x"',
)
FINE_LINES = (
    'account = "a\\u0000b"',
    'launcher = "$"',
    'wrapper = ["\\u0000"]',
    'scratch = "~nobody-here/x"',
    'partition = "a b"',
)
TEMPLATES = {
    "open": "{% if %}",
    "unknown": "{{ nonsense }}",
    "attribute": "{{ site.nonsense }}",
    "zero": "{{ 1 / 0 }}",
    "type": "{{ 'a' + 1 }}",
    "include": "{% include 'x' %}",
    "import": "{% import '/etc/passwd' as x %}",
    "filter": "{{ 1 | nonsense }}",
    "call": "{{ 1() }}",
    "range": "{% for i in range(10**12) %}{{ i }}{% endfor %}",
    "power": "{{ 'x' * 10**12 }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "latin-1": "\udcff",
    "escape": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "raises": "{{ {}['a']['b'] }}",
}


def cases(random: random.Random, made: Path) -> Iterator[Case]:
    """Cases on copies of `made`, which holds prepared data."""
    for line in (*LINES, *FINE_LINES):
        text = (
            line.encode()
            if "cpus_per_node" in line
            else b"cpus_per_node = 4\n" + line.encode()
        )
        yield Case(
            "site profile", line[:50], partial(_site, made, text), must=line in LINES
        )
    for number in range(25):
        yield Case(
            "site profile",
            f"damaged {number}",
            partial(_site, made, damaged(GOOD, random)),
        )
    for word in ("a folder", "a pipe", "a loop", "gone", "empty"):
        yield Case("site profile", word, partial(_odd, made, word), must=True)
    for word, text in TEMPLATES.items():
        yield Case("template", word, partial(_template, made, text), must=True)
    for word in ("a folder", "a pipe", "a loop", "gone"):
        yield Case("template", word, partial(_odd_template, made, word), must=True)


def make(folder: Path) -> None:
    """Create a study for Slurm with prepared data."""
    from scalestudy.config.settings import DataSettings
    from scalestudy.data.preparation import prepare
    from scalestudy.data.split import ensure_split

    (folder / "study.toml").write_text(STUDY)
    (folder / "here.toml").write_bytes(GOOD)
    ensure_split(
        prepare(DataSettings(source="digits", cache=str(folder / "cache"))), None, 0
    )


def _site(made: Path, content: bytes, folder: Path) -> list[str]:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    (folder / "here.toml").write_bytes(content)
    return ["submit", "study.toml", "--dry-run"]


def _odd(made: Path, word: str, folder: Path) -> list[str]:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    (folder / "here.toml").unlink()
    odd(folder / "here.toml", word)
    return ["submit", "study.toml", "--dry-run"]


def odd(file: Path, word: str) -> None:
    """Create a folder, pipe, link loop or empty file in place of a file."""
    if word == "a folder":
        file.mkdir()
    elif word == "a pipe":
        os.mkfifo(file)
    elif word == "a loop":
        file.symlink_to(file)
    elif word == "empty":
        file.touch()


def _template(made: Path, text: str, folder: Path) -> list[str]:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    (folder / "job.j2").write_bytes(text.encode(errors="surrogateescape"))
    return ["submit", "study.toml", "--dry-run", "--template", "job.j2"]


def _odd_template(made: Path, word: str, folder: Path) -> list[str]:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    odd(folder / "job.j2", word)
    return ["submit", "study.toml", "--dry-run", "--template", "job.j2"]
