"""The complete scripts of the guide on scripts."""

import re
from pathlib import Path

from paths import PROJECT


def write_from_guide(folder: Path, name: str) -> Path:
    """Write a complete script of the guide into a folder."""
    guide = (PROJECT / "docs" / "guides" / "script.md").read_text("utf-8")
    (text,) = re.findall(
        rf'^```python title="{name}"\n(.*?)^```', guide, re.MULTILINE | re.DOTALL
    )
    (folder / name).write_text(text)
    return folder / name
