"""How far measuring a node is, on the terminal's standard error."""

from rich.progress import Progress, SpinnerColumn, TextColumn

from scalestudy.cli.console import err
from scalestudy.features.topology.node import TopologyListener


class TopologyProgress(TopologyListener):
    """A spinner while something is measured."""

    def __init__(self) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, console=err(), transient=True)
        self._bar = self._progress.add_task("Measuring between two")

    def pairs_started(self) -> None:
        """Spin while bytes move."""
        self._progress.start()

    def pair_measured(self, done: int, total: int) -> None:
        """Count the pairs."""
        self._progress.update(self._bar, completed=done, total=total)

    def all_reduces_started(self) -> None:
        """Say what is slow about it."""
        self._progress.update(
            self._bar, description="Measuring all-reduces (starts TensorFlow in each process)"
        )

    def measuring_ended(self) -> None:
        """Spin no more."""
        self._progress.stop()
