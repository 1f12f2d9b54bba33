from pathlib import Path

from scalestudy.study.dump import study_toml
from scalestudy.study.parse import parse_study

TEXT = """
name = "all of it"
task = "cnn"
[data]
source = "/a/$$b \\"c\\""
image_size = [32, 16]
[train]
epochs = 3
xla = true
learning_rate = 1e-5
[sweep]
strategy = ["virtual", "single"]
workers = 1
"train.batch_size" = [8, 16]
image_size = [[8, 8], [16, 16]]
[launch]
device = "cpu"
"""


def test_a_dumped_study_reads_as_the_same_study() -> None:
    study = parse_study(TEXT, Path("a.toml"))
    assert parse_study(study_toml(study), Path("b.toml")) == study
