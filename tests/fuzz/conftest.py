import pytest
import torch
from hypothesis import settings

# A busy machine may be slow; it is not wrong for that.
settings.register_profile("unhurried", settings(deadline=None))
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
