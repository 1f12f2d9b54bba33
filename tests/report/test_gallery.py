"""The page of a gallery holds all it shows, and is fit to be read aloud."""

import re

from scalestudy.report.gallery import section, to_page
from scalestudy.study.gallery_record import GalleryRecord, GallerySample

PICTURES = dict.fromkeys(("image", "truth", "prediction", "difference"), "aGVsbG8=")


def record(kind="masks", **sample):
    values = {"name": "a<b>.png", "roles": ["worst by loss", "median by iou"], "loss": 0.25, "quality": 0.5}
    samples = [GallerySample.model_validate({**values, "pictures": PICTURES, **sample})]
    return GalleryRecord(kind=kind, metric="iou", better="higher", considered=8, of=20, samples=samples)


def test_a_page_needs_no_network_and_describes_every_picture():
    page = to_page(record(), "a & b")
    assert "a &amp; b" in page
    assert not re.search(r"https?://|src=\"(?!data:)|<script", page)
    alts = re.findall(r'<img alt="([^"]*)"', page)
    assert len(alts) == 4
    assert alts[1] == "truth of a&lt;b&gt;.png: loss 0.2500; IoU 0.500"
    assert "prefers-color-scheme: dark" in page and "@media print" in page
    assert "among 8 of 20 validation samples" in page
    assert "worst by loss, median by IoU" in page


def test_a_mistaken_class_is_said_with_its_probability():
    (wrong,) = section(record("classes", truth="cat", predicted="dog", probability=0.85))["shown"]
    assert wrong.wrong and "predicted dog (85 %), truth cat" in wrong.facts
    (right,) = section(record("classes", truth="cat", predicted="cat", probability=0.85))["shown"]
    assert not right.wrong and "cat (85 %), right" in right.facts
