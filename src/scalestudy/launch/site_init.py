"""The commented file of `scalestudy site init`, generated from the model, so it cannot go stale. Pure."""

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic.fields import FieldInfo

from scalestudy.launch.queue.base import QUEUE_ERRORS
from scalestudy.launch.queue.site import Container, Site, notation
from scalestudy.launch.slurm import Nodes, Slurm
from scalestudy.study.keys import wanted
from scalestudy.study.settings import StrictModel
from scalestudy.study.template import toml_line
from scalestudy.util import units
from scalestudy.util.errors import ScalestudyError

WIDTH = 100
LONGEST = 24 * 3600
"""Seconds of the time limit that is proposed where a partition allows more."""
NOT_KNOWN = "Slurm did not tell: write the cores of a node here."


@dataclass(frozen=True)
class Proposal:
    """What is known of a site.

    Attributes:
        values: Keys that are filled in.
        examples: Values that are shown, commented out, for keys that are not.
        notes: Sentences for the head of the file.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    examples: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()


def propose(nodes: Sequence[Nodes], accounts: Sequence[str], environment: Mapping[str, str]) -> Proposal:
    """A profile from what Slurm and the user's session say.

    The partition is the default one if it has GPUs or none has; otherwise the one with most nodes with GPUs.
    Where its nodes differ, the most frequent kind with GPUs counts.

    Args:
        nodes: What sinfo says; empty where it does not answer.
        accounts: What the user may charge; empty where nobody says.
        environment: Variables of the session, for its modules and proxies.
    """
    values: dict[str, Any] = {}
    examples = _session(environment)
    notes = [_described(each) for each in nodes]
    accounts = list(dict.fromkeys(accounts))
    if len(accounts) == 1:
        values["account"] = accounts[0]
    elif accounts:
        examples["account"] = accounts[0]
        notes.append(f"Accounts: {', '.join(accounts)}.")
    chosen = _chosen(nodes)
    if chosen is not None:
        values |= _of_nodes(chosen, _kinds_of_gpu(nodes, chosen))
        examples["memory_per_node"] = f"{chosen.memory // 2**20}M"
    return Proposal(values, examples, notes)


def site_template(proposal: Proposal) -> str:
    """Text of a site profile: every key with its meaning; those without a value are commented out."""
    values: dict[str, Any] = dict(proposal.values)
    lines = [
        *_comment(
            "A site profile: how jobs are given to one cluster. Studies name it by launch.site; "
            "`scalestudy check SITE` checks it. What is behind a # is a default, or an example if it says so."
        ),
    ]
    if proposal.notes:
        lines += [
            "#",
            "# What Slurm said here:",
            *(line for note in proposal.notes for line in _comment(note, "#   ")),
        ]
    for key, info in Site.model_fields.items():
        if key in ("name", "container"):
            continue
        lines += ["", *_key(Site, key, info, values.get(key), proposal.examples.get(key))]
    lines += ["", *_comment(_sentence(Site.model_fields["container"].description)), "# [container]"]
    for key, info in Container.model_fields.items():
        lines += list(_key(Container, key, info, None, None))
    return "\n".join(lines) + "\n"


def _key(model: type[StrictModel], key: str, info: FieldInfo, value: Any, example: Any) -> Iterator[str]:
    if value is not None:
        yield from _comment(_sentence(info.description) + _choices(model, key))
        yield toml_line(key, value)
        return
    if info.is_required():
        yield from _comment(f"{_sentence(info.description)} {NOT_KNOWN if model is Site else ''}".rstrip())
        yield f"{key} = 1" if model is Site else f'# {key} = "~/images/scalestudy.sif"'
        return
    default = info.get_default(call_default_factory=True)
    note = ""
    if example is not None or default in (None, (), {}):
        default, note = (
            example if example is not None else (info.examples or [default])[0],
            " Not set; for example:",
        )
    yield from _comment(_sentence(info.description) + _choices(model, key) + note)
    yield f"# {toml_line(key, default)}"


def _of_nodes(nodes: Nodes, kinds: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "partition": nodes.partition,
        "gpus_per_node": nodes.gpus,
        "cpus_per_node": nodes.cpus,
    }
    if len(kinds) > 1 and nodes.gpu_types:
        values["gpu_request"] = f"--gres=gpu:{nodes.gpu_types[0]}:{{gpus}}"
    if nodes.seconds:
        values["time_limit"] = notation(min(nodes.seconds, LONGEST))
    return values


def _chosen(nodes: Sequence[Nodes]) -> Nodes | None:
    up = [each for each in nodes if each.up and each.cpus > 0]
    with_gpus = [each for each in up if each.gpus]
    some = with_gpus or up
    default = [each for each in some if each.default]
    return max(default or some, key=lambda each: each.count, default=None)


def _kinds_of_gpu(nodes: Sequence[Nodes], chosen: Nodes) -> list[str]:
    kinds = [kind for each in nodes if each.partition == chosen.partition for kind in each.gpu_types]
    return list(dict.fromkeys(kinds))


def _session(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    modules = [each for each in environment.get("LOADEDMODULES", "").split(":") if each]
    if modules:
        found["modules"] = modules
    names = ("http_proxy", "https_proxy", "no_proxy")
    proxies = {name: environment[name] for name in names if environment.get(name)}
    if proxies and not any("@" in value for value in proxies.values()):  # a password has no place in a file
        found["proxies"] = proxies
    return found


def _described(nodes: Nodes) -> str:
    gpus = f", {nodes.gpus} GPU{'s' * (nodes.gpus > 1)}" + "".join(f" ({kind})" for kind in nodes.gpu_types)
    limit = f", at most {notation(nodes.seconds)}" if nodes.seconds else ""
    default = " (the default)" if nodes.default else ""
    return (
        f"{nodes.partition}{default}: {nodes.count} node{'s' * (nodes.count > 1)} of {nodes.cpus} cores, "
        f"{units.size(nodes.memory)}{gpus if nodes.gpus else ''}{limit}{'' if nodes.up else ', down'}"
    )


def _choices(model: type[StrictModel], key: str) -> str:
    schema = model.model_json_schema()["properties"][key]
    return f" Takes {wanted(schema)}." if "enum" in schema else ""


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _comment(text: str, indent: str = "# ") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def ask_site() -> tuple[Proposal, str, ScalestudyError | None]:
    """A proposal of a profile, the name of the cluster ("" if unknown), and why Slurm did not tell more."""
    slurm = Slurm()
    try:
        nodes = slurm.partitions()
        name = slurm.cluster_name()
    except QUEUE_ERRORS as error:
        return propose([], [], os.environ), "", error
    return propose(nodes, slurm.accounts(), os.environ), name, None
