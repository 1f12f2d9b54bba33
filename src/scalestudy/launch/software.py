"""What the software of this machine cannot run is refused before anything is started."""

from collections.abc import Sequence

from scalestudy.errors import UserError
from scalestudy.machine import installed
from scalestudy.study.point import Point


def refuse_missing_software(points: Sequence[Point]) -> None:
    """Refuse points that this machine's software cannot run.

    Raises:
        UserError: If TensorFlow, or Horovod for a horovod point, is missing.
    """
    if not installed.has_tensorflow():
        raise UserError(
            "TensorFlow in this environment",
            "none",
            "In the project's folder, run `pip install '.[cpu]'` or `pip install '.[gpu]'`.",
        )
    wanting = [point.name for point in points if point.traits.library == "horovod"]
    if wanting and not installed.horovod_built():
        raise UserError(
            f"Horovod, which {wanting[0]} needs"
            + (f" and {len(wanting) - 1} more" if len(wanting) > 1 else ""),
            "a Horovod that was built without TensorFlow"
            if installed.has_horovod()
            else "an environment without it",
            "Build it with `make horovod` in the project's folder (a C++ compiler and cmake are needed), "
            'or leave "horovod" out of the sweep.',
        )
