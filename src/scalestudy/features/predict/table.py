"""The table of a prediction, as text. Pure."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from scalestudy.study.model_record import ModelRecord

DIGITS = 6


def as_csv(lines: Sequence[dict[str, Any]], record: ModelRecord) -> str:
    """A row an image: its file, and its class with the probability of each, or its mask with their shares."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    masks = record.kind == "masks"
    first = ["file", "mask", "height", "width"] if masks else ["file", "class"]
    writer.writerow([*first, *(f"share_{name}" if masks else name for name in record.class_names)])
    for line in lines:
        numbers = line["shares"] if masks else line["probabilities"]
        own = [line["mask"], line["height"], line["width"]] if masks else [record.class_names[line["class"]]]
        writer.writerow([line["shown"], *own, *(f"{number:.{DIGITS}f}" for number in numbers)])
    return stream.getvalue()


def as_json_lines(lines: Sequence[dict[str, Any]], record: ModelRecord) -> str:
    """The same, as an object a line."""
    return "".join(json.dumps(_object(line, record)) + "\n" for line in lines)


def _object(line: dict[str, Any], record: ModelRecord) -> dict[str, Any]:
    names = record.class_names
    if record.kind == "masks":
        shares = dict(zip(names, line["shares"], strict=True))
        own = {key: line[key] for key in ("mask", "height", "width")}
        return {"file": line["shown"], **own, "shares": shares}
    probabilities = dict(zip(names, line["probabilities"], strict=True))
    return {"file": line["shown"], "class": names[line["class"]], "probabilities": probabilities}
