"""Whether folders of runs are of the study that is estimated, or of one that it was before."""

from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.errors import UserError

if TYPE_CHECKING:
    from scalestudy.study.file import Study

OF_RUNS = ("epochs", "batch_size", "batch", "keep_best", "gallery")
"""Settings that are told run by run, or that cost no step anything."""


def of_another(folder: Path, study: "Study") -> str:
    """What a folder's runs computed otherwise than the study asks for now; "" for nothing.

    Epochs and batches may differ, and how workers exchange.
    """
    from scalestudy.study.differences import differences
    from scalestudy.study.store import StudyFolder

    if not (folder / "study.json").exists():
        return ""
    made = StudyFolder.open(folder).study
    kept = {name: getattr(made.train, name) for name in OF_RUNS}
    launch = {name: getattr(study.launch, name) for name in ("device", "cpus_per_worker")}
    like = study.model_copy(
        update={
            "sweep": made.sweep,
            "train": study.train.model_copy(update=kept),
            "launch": made.launch.model_copy(update=launch),
        }
    )
    found = list(differences((made, []), (like, [])))
    return f"{folder}, of another study: {'; '.join(found)}" if found else ""


def refuse_others(target: Path, short: "Study") -> None:
    """Refuse to add to short runs that were made with other settings.

    Raises:
        UserError: Naming every key that differs.
    """
    from scalestudy.study.differences import refuse_other_study
    from scalestudy.study.store import StudyFolder

    if not (target / "study.json").exists():
        return
    try:
        refuse_other_study(target, (StudyFolder.open(target).study, []), (short, []))
    except UserError as error:
        raise UserError(
            error.expected, error.received, f"Remove {target}: its short runs are of the study as it was."
        ) from None
