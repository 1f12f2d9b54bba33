"""How a site wants to be asked for GPUs: by the node, by the task, in total, or not at all. Pure."""

import re

FORM = (
    'an option with {gpus} in it, such as "--gres=gpu:{gpus}" (PBS: "ngpus={gpus}"), all GPUs of a node '
    '("--gres=gpu:a100:4"), or "" where the partition alone brings them'
)
_PLAIN = r"[A-Za-z0-9_.:,()+-]*"
_SLURM = re.compile(rf"(--gres|--gpus-per-node|--gpus-per-task|--gpus)=({_PLAIN})\{{gpus\}}({_PLAIN})")
_WHOLE = re.compile(
    r"(?:--gres=gpu:|--gpus-per-node=)(?:[A-Za-z][\w.-]*:)?(\d+)(?:[(,][\w.:,()-]*)?", re.ASCII
)
_RESOURCE = r"[A-Za-z_]\w*=[\w.+-]+"
_PBS = re.compile(rf"(?:{_RESOURCE}:)*[A-Za-z_]\w*=\{{gpus\}}(?::{_RESOURCE})*", re.ASCII)


def checked(text: str) -> str:
    """The request, if it is one option of sbatch or resources of a PBS chunk.

    Raises:
        ValueError: If it is neither.
    """
    if text and not any(form.fullmatch(text) for form in (_SLURM, _WHOLE, _PBS)):
        raise ValueError(FORM)
    return text


def of_whole_nodes(request: str) -> int | None:
    """The GPUs of a node that it asks for, however many a job needs; None where that follows from the job."""
    found = _WHOLE.fullmatch(request)
    return int(found[1]) if found else None


def is_slurms(request: str) -> bool:
    """Whether it is an option of sbatch."""
    return request.startswith("-")


def filled(request: str, *, per_task: int, tasks: int, tasks_per_node: int) -> str:
    """The request with the number that its kind counts: of a node (also PBS), of a task, or in total.

    Args:
        request: As the profile has it.
        per_task: GPUs of a process.
        tasks: Processes.
        tasks_per_node: Most processes of a node.
    """
    counts = {"--gpus-per-task": per_task, "--gpus": per_task * tasks}
    return request.replace("{gpus}", str(counts.get(request.partition("=")[0], per_task * tasks_per_node)))
