"""A strategy: one worker under another name, to show what a strategy must declare."""

from scalestudy import Joined, Placement, Traits
from scalestudy import join as join_as

TRAITS = Traits(
    "thirdparty",
    "one worker, by another package",
    "tensorflow",
    most_workers=1,
    join="thirdparty.strategy:join",
    mark=("#112233", "square"),
)


def join(
    placement: Placement, *, workers: int, device: str, communication: str
) -> Joined:
    return join_as(
        "single", placement, workers=workers, device=device, communication=communication
    )
