"""What long runs share."""

import signal

import pytest

from eswm_gym.runs import FINAL_LR, Interrupt, falling, progress_bar


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_to_stop_and_handlers_come_back(number):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interrupt() as interrupt:
        assert not interrupt.stop
        signal.raise_signal(number)
        assert interrupt.stop
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_a_second_ctrl_c_is_an_ordinary_one():
    with pytest.raises(KeyboardInterrupt), Interrupt():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_falling():
    """From the begin to the end in a straight line, never below the last share."""
    assert [falling(x, 0.5) for x in (0.0, 0.5, 0.75, 1.0, 1.1)] == [1, 1, 0.5, FINAL_LR, FINAL_LR]
    assert falling(0.25) == 0.75


def test_no_bar_where_standard_error_is_no_terminal():
    assert progress_bar().disable and progress_bar(shown=False).disable
