"""Tasks compute in the tests' own process."""

import pytest


@pytest.fixture(autouse=True)
def _framework(framework):
    """Set TensorFlow up before anything computes."""
