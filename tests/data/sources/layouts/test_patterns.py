"""Images and masks wherever patterns say."""

import pytest


def test_patterns_find_files_in_any_layout(tree, paired, listed):
    root = tree("2020/day{}/scan.png", "2020/drawn/day{}.png", "2020/day1/.scan.png")
    found = paired(root, images="2020/day*/scan.png", masks="2020/drawn/*")
    assert found == [(f"2020/day{i}/scan.png", f"2020/drawn/day{i}.png") for i in (1, 2, 3)]
    assert "by the numbers" in listed(root, images="2020/day*/scan.png", masks="2020/drawn/*").understood


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"images": "a/*.png"}, "no `masks`"),
        ({"images": "a/*.png", "masks": "c/*.png"}, "none in"),
        ({"images": "a/*.png", "masks": "*/1.png"}, "which both"),
        ({"images": "/a/*.png", "masks": "b/*"}, "'/a/*.png'"),
    ],
)
def test_patterns_that_find_nothing_or_the_same_are_refused(tree, refused, keys, told):
    assert told in refused(tree("a/{}.png", "b/{}.png"), **keys).received
