"""A strategy: one worker under another name, to show what a strategy must declare."""

from scalestudy.study.strategies import Traits

TRAITS = Traits(
    "brought", "one worker, by another package", "tensorflow", most_workers=1,
    join="scalestudy.engines.tensorflow.strategies.replicas:join_single", colour="#112233", shape="square",
)  # fmt: skip
