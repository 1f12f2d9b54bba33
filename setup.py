"""The part of the build that pyproject.toml cannot state: the manual's text belongs to the package."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithManual(build_py):
    """Copy the pages of docs/, and what generates parts of them, for `scalestudy docs`."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if self.editable_mode:  # the pages lie beside the source
            return
        docs = Path(__file__).parent / "docs"
        for page in (*docs.rglob("*.md"), docs / "generate.py"):
            target = (
                Path(self.build_lib) / "scalestudy" / "manual" / page.relative_to(docs)
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)


setup(cmdclass={"build_py": BuildWithManual})
