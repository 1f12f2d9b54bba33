"""Run lessons and keep their outputs in them, for who reads before installing: `python course/record_outputs.py 1 4`.

Predictions and the exercise stay empty, so the last cell is not run. Pictures are stored in 32 colours.
"""

import base64
import io
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).parent
COLOURS = 32
"""More than a chart of a few series has, and a third of the bytes."""


def record(file: Path) -> None:
    """Run all cells of a lesson but the last, and write it with their outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell fails, such as one whose claims do not hold.
    """
    notebook = nbformat.read(file, as_version=4)
    exercise = notebook.cells.pop()
    place = {"metadata": {"path": str(HERE)}}
    client = NotebookClient(
        notebook, timeout=1800, resources=place, coalesce_streams=True
    )
    client.execute()
    for cell in notebook.cells:
        # Times of each cell would change with every recording.
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [kept(output) for output in cell.outputs if is_shown(output)]
    exercise.outputs, exercise.execution_count = [], None
    notebook.cells.append(exercise)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, file)


def is_shown(output: Any) -> bool:
    """Whether readers need this output: warnings are about the machine that ran the lesson."""
    return output.get("name") != "stderr"


def kept(output: Any) -> Any:
    """Return the output with its picture in few colours."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
        small = io.BytesIO()
        picture.convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
        data["image/png"] = base64.b64encode(small.getvalue()).decode()
    return output


if __name__ == "__main__":
    for number in sys.argv[1:]:
        (lesson,) = HERE.glob(f"{number}-*.ipynb")
        record(lesson)
        print(lesson.name, lesson.stat().st_size, "bytes", flush=True)
