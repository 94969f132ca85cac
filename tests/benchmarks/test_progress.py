"""What benchmarks say before they start and on the way."""

import pytest
from common.cli import BySize, Parser
from common.progress import progress


def parser():
    options = Parser("A benchmark.", BySize(0.5, 4, 120))
    options.add_settings(["one", "two"])
    options.add_count("--rooms", (2, 40, 150), "rooms of each setting")
    return options


@pytest.mark.parametrize(
    ("typed", "rooms", "takes"),
    [
        ([], 40, "4 minutes"),
        (["--quick"], 2, "30 seconds"),
        (["--full"], 150, "2 hours"),
        (["two"], 40, "2 minutes"),  # half of the settings
        (["--rooms", "80"], 80, "8 minutes"),
        (["--full", "one", "--rooms", "50"], 50, "20 minutes"),
    ],
)
def test_it_says_what_it_takes_before_it_starts(typed, rooms, takes, capsys):
    assert parser().parse_args(typed).rooms == rooms
    assert capsys.readouterr().err == f"this takes about {takes} on two cores\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--rooms", "0"], "argument --rooms: must be 1 or more, got 0"),
        (["--quick", "--full"], "not allowed with argument --quick"),
        (["three"], "no setting three; there are one, two"),
    ],
)
def test_what_cannot_be_run_is_refused(typed, said, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(typed)
    assert said in capsys.readouterr().err


def test_a_plain_line_for_each_part(capsys):
    """Where standard error is no terminal, as in the tests."""
    assert list(progress({"one": 1, "two": 2}.items(), "rooms")) == [("one", 1), ("two", 2)]
    assert list(progress(range(2), "runs")) == [0, 1]
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == [
        "rooms, one: 1 of 2",
        "rooms, two: 2 of 2",
        "runs: 1 of 2",
        "runs: 2 of 2",
    ]
