"""Write files as the kernel shows them under /sys."""

from pathlib import Path


def write(file: Path, text: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")
