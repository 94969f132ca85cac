"""What benchmarks say before they start and on the way."""

import pytest
from common.cli import BySize, Parser
from common.progress import progress


def parser():
    options = Parser("A benchmark.", BySize(0.5, 4, 180))
    options.add_settings(["small-1", "big-3"], quick=["small-1"], weight=lambda name: int(name[-1]))
    options.add_count("--rooms", (2, 40, 128), "rooms of each setting")
    return options


@pytest.mark.parametrize(
    ("typed", "rooms", "takes"),
    [
        ([], 40, "4 minutes"),
        (["--quick"], 2, "30 seconds"),  # of the small one
        (["--quick", "big-3"], 2, "1.5 minutes"),
        (["--full"], 128, "3 hours"),
        (["big-3"], 40, "3 minutes"),
        (["--rooms", "84"], 84, "1.5 hours"),  # half-way between 4 minutes and 3 hours
        (["--full", "small-1", "--rooms", "256"], 256, "1.5 hours"),  # twice as much as all, of which it is a quarter
    ],
)
def test_it_says_what_it_takes_before_it_starts(typed, rooms, takes, capsys):
    assert parser().parse_args(typed).rooms == rooms
    assert capsys.readouterr().err == f"this takes about {takes} on two cores\n"


def test_the_counts_of_a_full_run_take_as_long_as_it(capsys):
    options = Parser("A benchmark.", BySize(0.5, 4, 30))
    options.add_count("--rooms", (2, 8, 60), "rooms")
    options.add_count("--runs", (1, 1, 3), "runs")
    options.parse_args(["--rooms", "60", "--runs", "3"])
    assert "about 30 minutes" in capsys.readouterr().err


def test_parts_of_a_run_take_their_share(capsys):
    options = Parser("A benchmark.", BySize(0.5, 4, 30))
    options.add_parts("--experiments", {"short": 1, "long": 3})
    assert options.parse_args([]).experiments == ["short", "long"]
    assert options.parse_args(["--full", "--experiments", "long", "long"]).experiments == ["long"]
    assert capsys.readouterr().err.splitlines() == [
        "this takes about 4 minutes on two cores",
        "this takes about 22 minutes on two cores",
    ]


def test_settings_that_are_not_chosen_follow_from_the_size():
    assert parser().parse_args([]).settings == ["small-1", "big-3"]
    assert parser().parse_args(["--quick"]).settings == ["small-1"]
    assert parser().parse_args(["--quick", "big-3", "big-3"]).settings == ["big-3"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--rooms", "0"], "argument --rooms: must be a number of 1 or more, got 0"),
        (["--rooms", "ten"], "argument --rooms: must be a number of 1 or more, got ten"),
        (["--quick", "--full"], "not allowed with argument --quick"),
        (["three"], "no setting three; there are small-1, big-3"),
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
