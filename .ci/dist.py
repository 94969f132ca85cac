"""Builds sdist and wheel of the last commit into dist/, and prints their SHA-256.

All is built twice, the second time from the first sdist, and has to be the same byte for byte. With the same Python and
setuptools anybody can do it again. setuptools heeds SOURCE_DATE_EPOCH, the time of the commit, in wheels alone, so that
sdists are packed again here.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    os.umask(0o022)
    os.environ["SOURCE_DATE_EPOCH"] = git("log", "-1", "--format=%ct").decode().strip()
    if git("status", "--porcelain"):
        print("What is not committed is left out.")
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        with tarfile.open(fileobj=io.BytesIO(git("archive", "--prefix=commit/", "HEAD"))) as archive:
            archive.extractall(work, filter="data")
        once = build(work / "commit", out)
        again = build(unpack(once[0], work / "again"), work / "dist")
        print(f"\nBuilt with Python {platform.python_version()} and setuptools {version('setuptools')}:")
        for one, other in zip(once, again, strict=True):
            print(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}  {one.stat().st_size:,} bytes")
            if one.read_bytes() != other.read_bytes():
                sys.exit(f"{one.name} is another file when it is built again")


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


def build(source: Path, out: Path) -> tuple[Path, Path]:
    """The sdist of a folder, and the wheel of that sdist."""
    with tempfile.TemporaryDirectory() as folder:
        run_build("--sdist", source, Path(folder))
        (raw,) = Path(folder).iterdir()
        out.mkdir()
        sdist = repack(raw, out / raw.name)
        run_build("--wheel", unpack(sdist, Path(folder) / "source"), out)
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


def run_build(kind: str, source: Path, out: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", out, source]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def repack(raw: Path, sdist: Path) -> Path:
    """The same files in the order of their names, with the commit's time, nobody's own, and the plainest of modes."""
    when = int(os.environ["SOURCE_DATE_EPOCH"])
    with (
        tarfile.open(raw) as old,
        sdist.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=when) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, when
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    return sdist


def unpack(sdist: Path, into: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (source,) = into.iterdir()
    return source


if __name__ == "__main__":
    main()
