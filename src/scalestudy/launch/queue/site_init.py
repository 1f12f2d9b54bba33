"""The commented file that `scalestudy site init` writes, generated from the model of a site profile."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from scalestudy.config.keys import wanted
from scalestudy.config.settings import StrictModel
from scalestudy.config.toml_text import comment, one_line, toml_line
from scalestudy.launch.queue.site_profile import Container, Site, notation
from scalestudy.launch.queue.slurm import Slurm
from scalestudy.launch.queue.slurm_output import Nodes, gpu_kinds
from scalestudy.launch.scheduler import QUEUE_ERRORS
from scalestudy.util.errors import ScalestudyError

LONGEST = 24 * 3600
"""Upper bound in seconds of the proposed time limit."""
NOT_KNOWN = "Slurm did not answer: write the cores of a node here."


def propose_values(nodes: Sequence[Nodes], accounts: Sequence[str]) -> dict[str, Any]:
    """Propose values of a site profile from sinfo's nodes and the accounts that the user may charge.

    The partition is the default one if it has GPUs or no partition has any; otherwise the one with the most
    identical nodes with GPUs. If its nodes differ, the most frequent kind with GPUs counts.
    """
    values: dict[str, Any] = {}
    if len(set(accounts)) == 1:
        values["account"] = accounts[0]
    usable = [kind for kind in nodes if kind.up and kind.cpus > 0]
    with_gpus = [kind for kind in usable if kind.gpus]
    candidates = with_gpus or usable
    if not candidates:
        return values
    default = [kind for kind in candidates if kind.default]
    chosen = max(default or candidates, key=lambda kind: kind.count)
    values["partition"] = chosen.partition
    values["gpus_per_node"] = chosen.gpus
    values["cpus_per_node"] = chosen.cpus
    # Without a type, Slurm gives a job any of these kinds.
    if len(gpu_kinds(nodes, chosen.partition)) > 1 and chosen.gpu_types:
        values["gpu_request"] = f"--gres=gpu:{chosen.gpu_types[0]}:{{gpus}}"
    if chosen.seconds:
        values["time_limit"] = notation(min(chosen.seconds, LONGEST))
    return values


def site_template(values: Mapping[str, Any]) -> str:
    """Return the text of a site profile: every key with its meaning; keys without a value as comments."""
    lines = comment(
        "A site profile: how to submit jobs to one cluster. Studies name it in launch.site; "
        "`scalestudy check SITE` checks it. Values after # are defaults, or examples where it says so."
    )
    for key, info in Site.model_fields.items():
        if key not in ("name", "container"):
            lines.append("")
            lines += _key(Site, key, info, values.get(key))
    lines.append("")
    lines += comment(one_line(Site.model_fields["container"].description))
    lines.append("# [container]")
    for key, info in Container.model_fields.items():
        lines += _key(Container, key, info, None)
    return "\n".join(lines) + "\n"


def _key(
    model: type[StrictModel],
    key: str,
    info: FieldInfo,
    value: Any,
) -> list[str]:
    """Return the lines of a key: its meaning, and its value, or a default or an example as a comment."""
    words = one_line(info.description)
    schema = model.model_json_schema()["properties"][key]
    if "enum" in schema:
        words += f" Takes {wanted(schema)}."
    if value is not None:
        return [*comment(words), toml_line(key, value)]
    if info.is_required() and model is Site:
        return [*comment(f"{words} {NOT_KNOWN}"), f"{key} = 1"]
    if info.is_required():
        return [*comment(words), f'# {key} = "~/images/scalestudy.sif"']
    default = info.get_default(call_default_factory=True)
    if default not in (None, (), {}):
        return [*comment(words), f"# {toml_line(key, default)}"]
    example = default
    if info.examples:
        example = info.examples[0]
    words = f"{words} Not set; for example:"
    return [*comment(words), f"# {toml_line(key, example)}"]


class SlurmAnswer(NamedTuple):
    """What Slurm reports for a site profile; `error` if it does not answer.

    `gpu_kinds` are the numbers of nodes of the proposed partition by their kind of GPUs.
    """

    values: Mapping[str, Any] = {}
    cluster: str = ""
    gpu_kinds: Mapping[str, int] = {}
    error: ScalestudyError | None = None


def ask_site() -> SlurmAnswer:
    """Ask Slurm for the values of a site profile."""
    slurm = Slurm()
    try:
        nodes = slurm.partitions()
        name = slurm.cluster_name()
    except QUEUE_ERRORS as error:
        return SlurmAnswer(error=error)
    values = propose_values(nodes, slurm.accounts())
    return SlurmAnswer(values, name, gpu_kinds(nodes, values.get("partition", "")))
