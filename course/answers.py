"""Called by the last cells of each lesson: `confirm` its claims, `check` your answers to its exercise.

The right answers are in `EXERCISES`, with their computation. Try yourself before you look.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any


class DoesNotHold(AssertionError):
    """A claim or an answer that does not hold. Jupyter shows only its text, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def compare(what: str, predicted: Any, found: Any) -> None:
    """Print the result beside your prediction."""
    blank = predicted is None or predicted in ("", [])
    print(
        f"{what}: {found}. "
        + ("No prediction entered." if blank else f"You predicted {predicted}.")
    )


def confirm(claims: Mapping[str, Any]) -> None:
    """Print which claims hold for your results.

    Raises:
        DoesNotHold: If a claim does not hold.
    """
    for claim, holds in claims.items():
        print("✓" if holds else "✗", claim)
    wrong = [claim for claim, holds in claims.items() if not holds]
    if wrong:
        raise DoesNotHold(
            f"Expected all {len(claims)} claims to hold for your figures. Received {len(wrong)} that do not "
            "(✗ above). If you changed a cell, can you say why? If not, choose Run > Restart Kernel and "
            "Run All Cells."
        )


@dataclass(frozen=True)
class Exercise:
    """The right answer, and hints for wrong ones."""

    right: Any
    mistakes: Mapping[Any, str] = field(default_factory=dict)
    """Hints for answers that follow from a typical mistake. Lists are written as tuples."""
    otherwise: str = ""
    """Hint for all other answers."""


def check(lesson: int, **answers: Any) -> None:
    """Compare answers to the exercise of a lesson with the right ones, to 1 %.

    Raises:
        DoesNotHold: At the first answer that is missing or wrong, with a hint.
    """
    for name, given in answers.items():
        exercise = EXERCISES[lesson][name]
        if given is None:
            raise DoesNotHold(
                f"{name}: write your answer into the cell above, then run both cells."
            )
        if not _same(given, exercise.right):
            hints = [
                hint
                for answer, hint in exercise.mistakes.items()
                if _same(given, answer)
            ]
            raise DoesNotHold(
                f"{name} = {given!r} is not right. {[*hints, exercise.otherwise][0]}"
            )
        print(f"✓ {name} = {given!r}")


def _same(given: Any, answer: Any) -> bool:
    if isinstance(answer, tuple):
        fits = isinstance(given, Iterable) and len(given := list(given)) == len(answer)
        return fits and all(map(_same, given, answer))
    return isinstance(given, Real) and abs(given - answer) <= 0.01 * abs(answer)


EXERCISES: dict[int, dict[str, Exercise]] = {
    1: {
        "batch_for_half": Exercise(
            256 * 2**2,
            {
                512: "That divides the noise by √2 only: it falls with the square root of the batch.",
                128: "A smaller batch has more noise.",
            },
            "The noise falls with the square root of the batch. By which factor must it grow?",
        ),
        "epochs_with_256": Exercise(
            5 * 256 / 16,
            {
                5: "In as many epochs, the larger batch makes a sixteenth of the updates."
            },
            "How many updates does an epoch have with each of the two batches?",
        ),
    },
    2: {
        "factors": Exercise(
            (1 / 5, 1 / 5, 1 / 5, 2 / 5),
            {
                (1 / 4,)
                * 4: "These give the mean of the means. The image of a small slice then counts for more.",
                (
                    1,
                    1,
                    1,
                    2,
                ): "These are in the right proportion. For a mean, they must add up to 1.",
            },
            "A list of four: the share of the batch's images that each worker has.",
        ),
        "batch_gradient": Exercise(
            (30 * 1 + 30 * 5) / 60,
            {2: "This is the mean of the four means, as if the slices were equal."},
            "Multiply each mean by the images of its slice, add, and divide by the images of the batch.",
        ),
    },
    3: {
        "images_per_second": Exercise(
            40_000 * (50 * 4 * 256) / 60_000,
            {
                40_000: "This is the printed figure. How many images do 50 steps take?",
                40_000
                * 50
                * 256
                / 60_000: "256 is the batch of one GPU, and there are four.",
                40_000
                * 60_000
                / (
                    50 * 4 * 256
                ): "Fewer images were processed than the table assumes, not more.",
            },
            "The time of the epoch is 60,000 / 40,000 s. How many images did the steps take in it?",
        ),
        "accuracy": Exercise(
            (90 + 40) / (100 + 50),
            {
                0.85: "This is the mean of the two ranks' accuracies, as if they had as many images.",
                0.9: "This is the accuracy of rank 0 alone.",
                86.67: "As a share, between 0 and 1.",
            },
            "Add up the right ones, add up the images, and divide once.",
        ),
    },
    4: {
        "linear_rate": Exercise(
            0.1 * 32 / 8,
            {
                3.2: "The rate of 0.1 was chosen for 8 GPUs, not for one. By how much does the batch grow?"
            },
            "The linear rule multiplies the rate by the factor by which the global batch grows.",
        ),
        "sqrt_rate": Exercise(
            0.1 * (32 / 8) ** 0.5,
            {0.1 * 32**0.5: "The rate of 0.1 was chosen for 8 GPUs, not for one."},
            "Take the square root of the factor by which the global batch grows.",
        ),
    },
    5: {
        "variance": Exercise(
            (1 + 1 + 9 + 9) / 4 - 2**2,
            {
                0: "This is the average of the slices' variances. How far from 2 are the four values?",
                4
                / 3: "Batch normalisation divides by the number of values, not by one less.",
            },
            "The mean of the squares, less the square of the mean, over all four values.",
        ),
        "images": Exercise(
            20,
            {
                19: "One image more: 1/19 is still above 5 %.",
                2: "With two images half of the variance is missing.",
            },
            "For which k is 1/k = 5 %?",
        ),
    },
    6: {
        "half_width": Exercise(
            4.303 * 1 / 3**0.5,
            {
                2
                / 3
                ** 0.5: "That is two standard errors. How often does such an interval contain the truth?",
                1
                / 3
                ** 0.5: "That is one standard error. Multiply it by the factor for three runs.",
                4.303: "Divide the standard deviation by the root of the number of runs.",
                4.303
                * (2 / 3) ** 0.5
                / 3
                ** 0.5: "Divide the sum of squares by one less than the number of runs.",
            },
            "4.303 × standard deviation / √runs, and the standard deviation of 10, 11 and 12 is 1.",
        ),
        "of_steps": Exercise(
            100 / 25,
            {120 / 55: "That is the speed-up of the whole run."},
            "Time of the steps on one worker / on four.",
        ),
        "of_the_run": Exercise(
            (20 + 100) / (30 + 25),
            {4: "That is the speed-up of the steps. You wait for the start, too."},
            "Add the start to the steps, for one worker and for four.",
        ),
    },
    7: {
        "serial_seconds": Exercise(
            20 / 3,
            {
                30: "Those 30 s hold the serial part and a fourth of the rest.",
                5: "30 − 100/4 leaves out that the serial part is not divided by four.",
            },
            "Solve a + b = 100 and a + b/4 = 30 for a.",
        ),
        "highest_speed_up": Exercise(
            15,
            {
                4: "Four is what an ideal program reaches on four workers. How far with any number of them?"
            },
            "On any number of workers the serial seconds are left: 100 s / a.",
        ),
    },
    8: {
        "of_two_workers": Exercise(
            10 / (10 / 2 + 4),
            {
                2: "Two workers halve the computing, and add the exchange.",
                10 / 14: "Each worker computes half of the batch.",
            },
            "Time of a step on one worker / on two: half of the computing, and the exchange.",
        ),
        "milliseconds": Exercise(
            1.8 * 4 / (1 - 1.8 / 2),
            {36: "That is the time of half a batch."},
            "Solve c / (c/2 + 4) = 1.8 for c.",
        ),
    },
    9: {
        "core_hours": Exercise(
            40 * 3 * 2 * 128 * 1.1,
            {
                40 * 3 * 2 * 128: "The reserve is missing.",
                40 * 2 * 128 * 1.1: "Each training has three seeds.",
                40
                * 3
                * 2
                * 4
                * 1.1: "The centre charges whole nodes, however many of their cores you use.",
                40
                * 3
                * 2
                * 1.1: "These are hours of one node. The centre charges for each of its cores.",
            },
            "Trainings × seeds × hours × cores that are charged × 1.1.",
        ),
    },
    10: {
        "gpu": Exercise(
            9 % 4,
            {
                9: "No machine has ten GPUs. The local rank counts the processes of one machine.",
                2: "That is the machine, counted from 0. Which of its four processes is rank 9?",
            },
            "Ranks 0 to 3 are on the first machine, 4 to 7 on the second.",
        ),
        "steps_of_an_epoch": Exercise(
            64_000 / (8 * 64),
            {1000: "That is an epoch of processes that each read all images."},
            "How many images do the eight processes take in one step?",
        ),
    },
}
"""Exercises by lesson, then by the name of the variable."""
