"""What long runs share."""

import os
import signal
from pathlib import Path

import pytest
import torch

from eswm_gym import runs
from eswm_gym.runs import FINAL_LR, Interrupt, falling, progress_bar, use_free_cores


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


@pytest.mark.parametrize(
    ("free", "told", "threads"), [(4, None, 4), (3, None, 3), (0, None, 1), (9, None, 4), (0, "4", 4)]
)
def test_threads_keep_to_cores_that_are_free(monkeypatch, free, told, threads):
    monkeypatch.setattr(runs, "free_cores", lambda: free)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if told:
        monkeypatch.setenv("OMP_NUM_THREADS", told)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        assert use_free_cores() == torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="Linux says how busy its cores are")
def test_idle_cores_are_counted(monkeypatch):
    """Of the cores 0, 1 and 3 one was idle for all of ten ticks, one for six and one for two."""
    stat = ["cpu0 {} 0 0 {} 0 0 0", "cpu1 {} 0 0 {} 0 0 0", "cpu2 0 0 0 0 0 0 0", "cpu3 {} 0 0 {} 0 0 0"]
    looks = iter(
        [
            "\n".join(line.format(5, 5) for line in stat),
            "\n".join(line.format(5 + busy, 5 + 10 - busy) for line, busy in zip(stat, (0, 4, 0, 8), strict=True)),
        ]
    )
    monkeypatch.setattr(runs.Path, "read_text", lambda self: next(looks))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 3})
    monkeypatch.setattr(runs.time, "sleep", lambda _: None)
    assert runs.free_cores() == 2
