"""What benchmarks say on the way."""

from common.progress import progress


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
