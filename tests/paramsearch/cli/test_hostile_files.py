"""Files that are not what they seem: no crash, no hang, no traceback."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deployed import file
from limited import limited, refused

from paramsearch.deploy.message_files import portions
from paramsearch.parameters.parameter_file import save


@pytest.fixture(scope="module")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deployed") / "parameters.json"
    save(file(), path)
    return path


def test_corrupt_offsets_are_not_followed(tmp_path: Path, parameters: Path) -> None:
    """Offsets of texts that lie far outside the buffer end a process that trusts them."""
    table = pa.table({"symbol": [0, 1], "id": ["first", "second"]})
    path = tmp_path / "messages.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    content, offsets = path.read_bytes(), struct.pack("<3i", 0, 5, 11)
    assert content.count(offsets) == 1
    for wrong in ((0, 1 << 30, (1 << 31) - 1), (-(1 << 31), 5, 11), (0, 11, 5)):
        path.write_bytes(content.replace(offsets, struct.pack("<3i", *wrong)))
        assert "cannot be read" in refused(limited("analyze", parameters, path))


def test_texts_that_are_not_utf_8(tmp_path: Path, parameters: Path) -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"\xff\xfe")]
    )
    path = tmp_path / "messages.parquet"
    pq.write_table(pa.table({"symbol": [0, 1], "id": bad}), path)
    assert "UTF8" in refused(limited("analyze", parameters, path))


def test_a_text_for_many_rows_is_kept_once(tmp_path: Path) -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.int32()), ["x" * 9, "y"])
    path = tmp_path / "messages.parquet"
    pq.write_table(pa.table({"symbol": [0, 1, 2, 3], "id": names.cast(pa.string())}), path)
    ((symbols, ids),) = portions(path)
    assert symbols.tolist() == [0, 1, 2, 3]
    assert ids == ["x" * 9, None, "y", "x" * 9]
    assert ids[0] is ids[3]


def test_messages_that_never_end(tmp_path: Path, parameters: Path) -> None:
    assert "not a regular file" in refused(limited("analyze", parameters, "/dev/zero"))
    with open("/dev/zero", "rb") as endless:
        assert "a line of more than" in refused(limited("analyze", parameters, stdin=endless))
    long = tmp_path / "long.csv"
    long.write_bytes(b"symbol\n" + b"1" * (3 << 20))
    assert "a line of more than" in refused(limited("analyze", parameters, long))
    os.mkfifo(tmp_path / "pipe.parquet")
    assert "not a regular file" in refused(
        limited("analyze", parameters, tmp_path / "pipe.parquet")
    )


def test_messages_from_a_pipe(tmp_path: Path, parameters: Path) -> None:
    """A named pipe works as ever, and so does standard input, whatever its bytes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.fork()
    if writer == 0:
        with pipe.open("wb") as out:
            out.write(b"0\n1\n\xff\n")
        os._exit(0)
    done = limited("analyze", parameters, pipe, "--json")
    os.waitpid(writer, 0)
    assert '"messages": 2, "rejected": 1' in done.stdout
    (tmp_path / "bytes").write_bytes(b"\xef\xbb\xbf0\r\n1\r\n\xff\n")
    with (tmp_path / "bytes").open("rb") as stream:
        assert limited("analyze", parameters, "--json", stdin=stream).stdout == done.stdout


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_only_regular_files_are_opened(tmp_path: Path, parameters: Path, kind: str) -> None:
    strange = Path("/dev/zero")
    if kind == "pipe":
        strange = tmp_path / "pipe"
        os.mkfifo(strange)
    (parameters.parent / (parameters.name + ".sig")).write_text("AAAA\n")
    for arguments in (
        ("table", strange, "-o", tmp_path / "table"),
        ("audit", parameters, "--public-key", strange),
        ("audit", parameters, "--public-key", parameters, "--signature", strange),
        ("sign", parameters, "--key", strange),
        ("profile", strange),
        ("randomize", strange, "--value", "1"),
    ):
        refused(limited(*arguments))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "index.parquet").symlink_to(strange)
    problem = ("--n", "10", "--eps", "1", "--delta", "1e-6", "--max-value", "1")
    assert "not a regular file" in refused(limited("lookup", tmp_path / "t", *problem))


def test_many_keys_given_twice(tmp_path: Path) -> None:
    names = ",".join(f'"{i}":0' for i in range(300_000))
    path = tmp_path / "config.json"
    path.write_text("{" + names + ',"last":0,"last":0}')
    assert "'last' is given twice" in refused(limited("audit", path))
