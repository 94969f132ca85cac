"""Files are as they were or whole; JSON knows its hash."""

import json

import pytest

from eswm_gym.files import CheckpointError, checksum_of, read_json, replacing


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "deep" / "file.txt"  # folders are made
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="disk full"), replacing(path) as temporary:
        temporary.write_text("ha")
        raise OSError("disk full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "file.txt"
    with replacing(path) as one:
        with replacing(path) as other:
            one.write_text("one")
            other.write_text("other")
        assert path.read_text() == "other"
    assert path.read_text() == "one"


def test_a_checksum_does_not_depend_on_layout():
    assert checksum_of({"a": 1, "b": [2.5, None]}) == checksum_of(json.loads('{"b": [2.5, null],\n "a": 1}'))
    assert checksum_of({"a": 1}) != checksum_of({"a": 2})


def test_only_json_objects_are_read(tmp_path):
    path = tmp_path / "file.json"
    with pytest.raises(FileNotFoundError, match="file.json"):
        read_json(path)
    for text, message in (("{", "is not JSON"), ("[]", "does not hold a JSON object"), ("1", "JSON object")):
        path.write_text(text)
        with pytest.raises(CheckpointError, match=message):
            read_json(path)
    path.write_text('{"a": 1}')
    assert read_json(path) == {"a": 1}
