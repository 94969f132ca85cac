import numpy as np
import pytest

from eswm_gym.rooms import bits_to_state, state_to_bits


def test_most_significant_bit_first():
    assert state_to_bits(37).tolist() == [1, 0, 0, 1, 0, 1]  # 32 + 4 + 1
    assert bits_to_state([1, 0, 0, 1, 0, 1]) == 37
    assert state_to_bits(1, n_bits=3).tolist() == [0, 0, 1]


@pytest.mark.parametrize("shape", [(64,), (4, 16), (2, 4, 8)])
def test_there_and_back_in_any_shape(shape):
    states = np.arange(64).reshape(shape)
    bits = state_to_bits(states)
    assert bits.shape == (*shape, 6)
    assert bits.dtype == np.int8
    np.testing.assert_array_equal(bits_to_state(bits), states)
    spelled = ["".join(map(str, row)) for row in bits.reshape(-1, 6)]
    assert spelled == [format(state, "06b") for state in range(64)]
