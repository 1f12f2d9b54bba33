"""A site's own words for qsub: one option each, and none that changes what a job's layout says. Pure."""

import re

from scalestudy.errors import UserError
from scalestudy.launch.queue.site.profile import Site

KEYS = {"q": "partition", "A": "account", "v": "env", "t": "sweep"}
COMPUTED = "JNSoejrCIfzX"
"""Letters of qsub that follow from the points, or that the job script relies on."""
FLAGS = "hV"
"""Letters that take no value."""
RESOURCES = (
    "select", "place", "walltime", "nodes", "ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "min_walltime",
    "max_walltime",
)  # fmt: skip
"""What -l may not name."""
ATTRIBUTES = ("depend", "block", "array_indices_submitted", "interactive", "run_count")
"""What -W may not name."""


def own_options(site: Site) -> list[str]:
    """The profile's `directives`, each "-x" or "-x value".

    Raises:
        UserError: If one of them would change what the job asks for, or is more than one option.
    """
    return [_option(text.strip(), site) for text in site.directives]


def word(text: str, key: str, site: Site) -> str:
    """A value that qsub reads as one word.

    Raises:
        UserError: If it holds blanks or quotes, at which qsub would split it.
    """
    if re.search(r"[\s\"'\\#]", text):
        raise UserError(
            f"one plain word for `{key}` of the site profile {site.name}, as qsub takes it",
            repr(text),
            "Write it without blanks and quotes.",
        )
    return text


def _option(text: str, site: Site) -> str:
    found = re.fullmatch(r"-([A-Za-z])\s*(.*)", text)
    if found is None or (found[1] in FLAGS and found[2]):
        raise _refused(site, text, 'Write each option as a text of its own, "-l name=value".')
    letter, value = found.groups()
    if letter in KEYS:
        raise _refused(site, text, f"Write it as `{KEYS[letter]}`.")
    named = {part.partition("=")[0] for part in value.split(",")}
    if (
        letter in COMPUTED
        or (letter == "l" and named & set(RESOURCES))
        or (letter == "W" and named & set(ATTRIBUTES))
    ):
        raise _refused(site, text, "Remove it: the job's own value follows from the point.")
    return f"-{letter} {word(value, 'directives', site)}".rstrip()


def _refused(site: Site, text: str, action: str) -> UserError:
    return UserError(
        "directives that leave a job's layout alone", f"{text!r} in the site profile {site.name}", action
    )
