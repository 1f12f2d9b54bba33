"""Names of points: unique in their study, and fit for folders."""

import hashlib
import json
from typing import Any
from urllib.parse import quote

LONGEST = 200
"""File systems take 255 bytes; a temporary name beside it needs some of them."""


def point_name(strategy: str, workers: int, seed: int, swept: dict[str, Any]) -> str:
    """`horovod-w2-s0`, with `-batch_size=8` for every other swept value.

    Different values give different names: floats are written in full, and every character that a
    folder or a shell could mistake is percent-encoded. A name too long for a folder ends in a
    digest of the whole instead.
    """
    parts = [f"{strategy}-w{workers}-s{seed}"]
    for name, value in swept.items():
        key = name.partition(".")[2]
        parts.append(f"{name if key == 'seed' else key}={_text(value)}")
    full = "-".join(parts)
    if len(full) <= LONGEST:
        return full
    return f"{full[: LONGEST - 17]}-{hashlib.sha256(full.encode()).hexdigest()[:16]}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    # Not quoted as JSON, so "given" reads given; no key takes both a text and a number of its look.
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text, safe="")
