"""Small sets of TensorFlow Datasets, written by TFDS itself: `python make_tfds.py FOLDER`."""

import sys

import numpy as np
import tensorflow_datasets as tfds


class Leaves(tfds.core.GeneratorBasedBuilder):
    """Images of different sizes with a label and a mask of 1, 2 and 3, as in the pets data set."""

    VERSION = tfds.core.Version("0.1.0")
    pkg_dir_path = "."

    def _info(self):
        features = {
            "image": tfds.features.Image(shape=(None, None, 3)),
            "label": tfds.features.ClassLabel(names=["cbb", "cmd"]),
            "segmentation_mask": tfds.features.Image(shape=(None, None, 1)),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, _):
        counts = {"train": 6, "validation": 4, "test": 2}
        return {split: self._generate_examples(split, count) for split, count in counts.items()}

    def _generate_examples(self, split, count):
        for i in range(count):
            height, width = 8 + i, 20 - i
            mask = np.full((height, width, 1), 2, np.uint8)
            mask[:3], mask[3] = 1, 3
            image = np.full((height, width, 3), 40 * i, np.uint8)
            yield f"{split}-{i}", {"image": image, "label": i % 2, "segmentation_mask": mask}


class Small(tfds.core.GeneratorBasedBuilder):
    """Images of one size; labels of the test split are withheld, and one split has an unusual name."""

    VERSION = tfds.core.Version("1.2.3")
    pkg_dir_path = "."

    def _info(self):
        features = {
            "image": tfds.features.Image(shape=(6, 5, 1)),
            "label": tfds.features.ClassLabel(names=["zero", "one", "two"]),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, _):
        return {split: self._generate_examples(split) for split in ("train", "validation", "test", "extra")}

    def _generate_examples(self, split):
        for i in range(9):
            image = np.full((6, 5, 1), 20 * i, np.uint8)
            yield f"{split}-{i}", {"image": image, "label": -1 if split == "test" else i % 3}


if __name__ == "__main__":
    for form in ("array_record", "tfrecord"):
        Leaves(data_dir=f"{sys.argv[1]}/{form}", file_format=form).download_and_prepare()
    Small(data_dir=f"{sys.argv[1]}/named", file_format="array_record").download_and_prepare()
