"""Opens a file and gives its text, whatever it is packed in, in pieces, so that its size does not matter.

That it is packed by gzip, bzip2 or xz is told by the first bytes and not by the name. Text is UTF-8, or
UTF-16 if it says so at its beginning; bytes that are neither are replaced. Pipes can be read, too.
"""

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from autoscaler.errors import UsageError

Progress = Callable[[float], None]
"""Called now and then with the share of the file that is read, in [0, 1]."""

LINE_MAX = 64 * 2**20
"""A longer line [characters] is cut."""
DOCUMENT_MAX = 256 * 2**20
"""A longer JSON document [characters] is refused; of lines there may be any number."""
LOOK_AHEAD = 50
"""So many lines are looked at to tell what the file is: a rotated log may begin in the middle of a line."""
_CHUNK = 2**18
_PACKED: dict[bytes, Callable[[BufferedReader], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_OTHERWISE_PACKED = {
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"PK\x03\x04": "unzip",
}
_NO_TEXT = {
    b"SQLite format 3\x00": "a database; if it is a history of this program, give it with --history",
    b"PAR1": "Parquet; export it as CSV",
}


class TextFile:
    """The text of a file: looked at first, then read once, by line or as a whole."""

    def __init__(self, path: Path, raw: BufferedReader, progress: Progress | None) -> None:
        self._path, self._raw, self._progress = path, raw, progress
        self._size = path.stat().st_size
        self._pieces = self._decoded()
        self.head, self.whole_in_head = self._begun()
        """The first lines, and whether they are all."""

    def _begun(self) -> tuple[str, bool]:
        begun: list[str] = []
        lines = length = 0
        for piece in self._pieces:
            begun.append(piece)
            lines, length = lines + piece.count("\n"), length + len(piece)
            if lines > LOOK_AHEAD or length > LINE_MAX:
                return "".join(begun), False
        return "".join(begun), True

    def _decoded(self) -> Iterator[str]:
        start = self._raw.peek(16)[:16]
        for magic, remedy in _OTHERWISE_PACKED.items():
            if start.startswith(magic):
                raise UsageError(
                    f"{self._path}: is packed in a way that is not read here; unpack it: "
                    f"{remedy} {self._path}"
                )
        for magic, what in _NO_TEXT.items():
            if start.startswith(magic):
                raise UsageError(f"{self._path}: is {what}")
        opener = next((opener for magic, opener in _PACKED.items() if start.startswith(magic)), None)
        binary: IO[bytes] = opener(self._raw) if opener else self._raw
        chunk = binary.read(_CHUNK)
        utf16 = chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        decoder = codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8-sig")(errors="replace")
        while chunk:
            if text := decoder.decode(chunk):
                yield text
            if self._progress and self._size:
                self._progress(min(1.0, self._raw.tell() / self._size))
            chunk = binary.read(_CHUNK)
        if text := decoder.decode(b"", final=True):
            yield text
        if self._progress:
            self._progress(1.0)

    def _text(self) -> Iterator[str]:
        yield self.head
        yield from self._pieces

    def lines(self) -> Iterator[str]:
        """Yield the lines, without what ends them; what is beyond `LINE_MAX` of one is left out."""
        begun: list[str] = []
        length = 0
        for piece in self._text():
            first, *others = piece.split("\n")
            if length < LINE_MAX:
                begun.append(first)
                length += len(first)
            if others:
                yield "".join(begun).removesuffix("\r")
                for line in others[:-1]:
                    yield line.removesuffix("\r")
                begun, length = [others[-1]], len(others[-1])
        if last := "".join(begun):
            yield last.removesuffix("\r")

    def whole(self) -> str:
        """Return all of it; raises UsageError if that is more than `DOCUMENT_MAX`."""
        pieces, length = [], 0
        for piece in self._text():
            pieces.append(piece)
            length += len(piece)
            if length > DOCUMENT_MAX:
                raise UsageError(
                    f"{self._path}: is a JSON document of more than {DOCUMENT_MAX // 2**20} MiB; write its "
                    "records one a line (jq -c '.[]')"
                )
        return "".join(pieces)


@contextmanager
def opened(path: Path, progress: Progress | None = None) -> Iterator[TextFile]:
    """Open `path` for the time of reading.

    Raises
    ------
    UsageError
        If it cannot be read, now or later; the text says why, and what to do.
    """
    try:
        if path.is_dir():
            raise UsageError(
                f"{path}: is a folder; name a file in it (parts of a log are joined by: zcat -f "
                f"{path}/access.log* > all.log)"
            )
        with path.open("rb") as raw:
            yield TextFile(path, raw, progress)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: cannot be read: there is no such file") from error
    except PermissionError as error:
        raise UsageError(
            f"{path}: cannot be read: permission denied; let this user read it (chmod), or copy it"
        ) from error
    except (OSError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read: {error}; is it whole?") from error
