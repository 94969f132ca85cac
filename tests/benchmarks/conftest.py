"""What tests of benchmarks share."""

import pytest
from common.models import WEIGHTS


@pytest.fixture
def compared_weights():
    """Skip what needs the models that are compared where they are not."""
    if not any(WEIGHTS.glob("*.safetensors")):
        pytest.skip("a source distribution leaves benchmarks/weights/*.safetensors out; they are in the repository")
