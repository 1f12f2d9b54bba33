"""Messages for TensorFlow's own errors."""

import pytest

from scalestudy.util.tracebacks import error_text

pytestmark = pytest.mark.engine


def test_an_error_in_a_compiled_function_is_told_by_what_it_says(framework):
    @framework.function(input_signature=[framework.TensorSpec([None])])
    def last(values):
        return framework.gather(values, 7)

    with pytest.raises(framework.errors.InvalidArgumentError, match="Detected at node") as caught:
        last(framework.ones([5]))
    said = error_text(caught.value)
    assert said.startswith("InvalidArgumentError: Graph execution error: indices = 7 is not in [0, 5)")
