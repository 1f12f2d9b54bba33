"""A site's own options of sbatch: one each, and none that changes what a job's layout says. Pure."""

import re

from scalestudy.errors import UserError
from scalestudy.launch.queue.site.profile import Site

KEYS = {
    "partition": "partition", "account": "account", "qos": "qos", "constraint": "constraint",
    "mem": "memory_per_node", "mem-per-cpu": "memory_per_node", "mem-per-gpu": "memory_per_node",
    "time": "time_limit", "time-min": "time_limit", "comment": "comment", "exclusive": "exclusive",
    "oversubscribe": "exclusive", "share": "exclusive", "signal": "signal_lead",
    **dict.fromkeys(
        ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task"), "gpu_request"
    ),
}  # fmt: skip
"""Options that a key of the profile stands for."""
COMPUTED = (
    "array", "nodes", "ntasks", "ntasks-per-node", "tasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu", "job-name", "output", "error", "input", "requeue",
    "no-requeue", "open-mode", "dependency", "kill-on-invalid-dep", "wait", "wrap", "parsable", "test-only",
    "clusters", "cluster", "help", "usage", "version",
)  # fmt: skip
"""Options that follow from the points, or that the job script relies on."""
SHORT = {
    "a": "array", "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task",
    "C": "constraint", "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus",
    "H": "hold", "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "m": "distribution",
    "M": "clusters", "N": "nodes", "n": "ntasks", "O": "overcommit", "o": "output", "p": "partition",
    "q": "qos", "Q": "quiet", "s": "oversubscribe", "S": "core-spec", "t": "time", "w": "nodelist",
    "W": "wait", "x": "exclude",
}  # fmt: skip
"""Letters of sbatch, each with the option that it stands for."""
FLAGS = ("hold", "no-kill", "overcommit", "quiet")
"""Those letters' options that take no value."""
_LONG = re.compile(r"--([a-z][a-z0-9-]*)(?:(=)(.*)|\s+(.*))?")
_LETTER = re.compile(r"-([A-Za-z])\s*(.*)")


def own_options(site: Site) -> list[str]:
    """The profile's `directives`, each as "--name" or "--name=value".

    sbatch takes a beginning of a name for the whole, several letters in one word, and several options on a
    line; so a name that could be one of ours, and a word that could be another option, are refused.

    Raises:
        UserError: If one of them is refused.
    """
    return [_option(text.strip(), site) for text in site.directives]


def _option(text: str, site: Site) -> str:
    name, value = _parts(text, site)
    ours = [
        each for each in (*KEYS, *COMPUTED, *(("gres",) if site.gpus_per_node else ())) if _means(name, each)
    ]
    if ours:
        key = "gpu_request" if ours[0] == "gres" else KEYS.get(ours[0])
        action = f"Write it as `{key}`." if key else "Remove it: the job's own value follows from the point."
        raise _refused(site, text, f"which sets --{ours[0]}", action)
    return f"--{name}" if value is None else f"--{name}={value}"


def _parts(text: str, site: Site) -> tuple[str, str | None]:
    one = 'Write each option as a text of its own, "--name=value".'
    if found := _LONG.fullmatch(text):
        name, equals, given, word = found.groups()
        if word and (word.startswith("-") or re.search(r"\s", word)):
            raise _refused(site, text, "which are several options", one)
        return name, given if equals else word
    if found := _LETTER.fullmatch(text):
        known = SHORT.get(found[1])
        if known is None or (known in FLAGS and found[2]) or re.search(r"^-|\s", found[2]):
            raise _refused(site, text, "which is no single option", one)
        return known, found[2] or None
    raise _refused(site, text, "which is no option", one)


def _means(name: str, option: str) -> bool:
    """Whether sbatch could take this name for that option."""
    return option.startswith(name)


def _refused(site: Site, text: str, why: str, action: str) -> UserError:
    return UserError(
        "directives that leave a job's layout alone",
        f"{text!r} in the site profile {site.name}, {why}",
        action,
    )
