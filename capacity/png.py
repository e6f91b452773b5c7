"""Draws shapes as a PNG with nothing but the standard library: areas by scan lines, lines by distance, text by glyphs.

Letters are 8 by 16 pixels with sixteen shades (capacity/data/glyphs.txt); what isn't ASCII is drawn as a question mark.
"""

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

from srvmod.capacity.shapes import Anchor, Area, Colour, Line, Place, Shape, Text

ADVANCE: Final = 7
"""Pixels from one letter to the next."""
CELL: Final = (8, 16)
BASE: Final = 12
"""Rows of a letter's cell above its base line."""
FINE: Final = 4
"""Scan lines per pixel, for smooth edges of areas."""


@lru_cache(maxsize=1)
def _glyphs() -> dict[str, str]:
    text = (files("srvmod.capacity") / "data" / "glyphs.txt").read_text(encoding="utf-8")
    return {line[0]: line[2:] for line in text.splitlines()}


class _Canvas:
    """White pixels that are painted over."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [bytearray(b"\xff" * 3 * width) for _ in range(height)]

    def paint(self, x: int, y: int, colour: Colour, cover: float) -> None:
        """Mix a colour into a pixel; places outside are left out."""
        if not (0 <= x < self.width and 0 <= y < self.height) or cover <= 0:
            return
        row, share = self.rows[y], min(1.0, cover)
        for part, value in enumerate(colour):
            row[3 * x + part] = round(row[3 * x + part] * (1 - share) + value * share)

    def area(self, shape: Area) -> None:
        covers: dict[tuple[int, int], float] = {}
        ring = [*shape.corners, shape.corners[0]]
        top, bottom = min(y for _, y in ring), max(y for _, y in ring)
        for fine in range(int(top * FINE), math.ceil(bottom * FINE)):
            y = (fine + 0.5) / FINE
            crossings = sorted(
                x0 + (x1 - x0) * (y - y0) / (y1 - y0) for (x0, y0), (x1, y1) in pairwise(ring) if (y0 <= y) != (y1 <= y)
            )
            for left, right in zip(crossings[::2], crossings[1::2], strict=False):
                for x in range(int(left), math.ceil(right)):
                    within = min(right, x + 1) - max(left, x)
                    covers[x, fine // FINE] = covers.get((x, fine // FINE), 0.0) + within / FINE
        for (x, y), share in covers.items():
            self.paint(x, y, shape.colour, share * shape.cover)

    def line(self, shape: Line) -> None:
        half = shape.width / 2
        covers: dict[tuple[int, int], float] = {}
        for start, end in _dashes(shape):
            (x0, y0), (x1, y1) = start, end
            length = math.hypot(x1 - x0, y1 - y0)
            for y in range(int(min(y0, y1) - half - 1), math.ceil(max(y0, y1) + half) + 1):
                for x in range(int(min(x0, x1) - half - 1), math.ceil(max(x0, x1) + half) + 1):
                    along = ((x + 0.5 - x0) * (x1 - x0) + (y + 0.5 - y0) * (y1 - y0)) / length**2 if length else 0.0
                    near = max(0.0, min(1.0, along))
                    away = math.hypot(x + 0.5 - x0 - near * (x1 - x0), y + 0.5 - y0 - near * (y1 - y0))
                    covers[x, y] = max(covers.get((x, y), 0.0), half + 0.5 - away)
        for (x, y), cover in covers.items():
            self.paint(x, y, shape.colour, cover)

    def text(self, shape: Text) -> None:
        share = {Anchor.START: 0.0, Anchor.MIDDLE: 0.5, Anchor.END: 1.0}[shape.anchor]
        before = round(share * ADVANCE * len(shape.text))
        left, base = round(shape.place[0]), round(shape.place[1])
        for index, letter in enumerate(shape.text):
            shades = _glyphs().get(letter if letter.isascii() else "?", "")
            for place, shade in enumerate(shades):
                along, down = index * ADVANCE - before + place % CELL[0], place // CELL[0] - BASE
                x, y = (left + down, base - along) if shape.upright else (left + along, base + down)
                self.paint(x, y, shape.colour, int(shade, 16) / 15)


def _dashes(shape: Line) -> Iterator[tuple[Place, Place]]:
    """The straight pieces of a line that are drawn."""
    at = 0.0
    for (x0, y0), (x1, y1) in pairwise(shape.places):
        length = math.hypot(x1 - x0, y1 - y0)
        if not shape.dash:
            yield (x0, y0), (x1, y1)
            continue
        done = 0.0
        while done < length:
            piece = min(shape.dash - at % shape.dash, length - done)
            if int(at / shape.dash) % 2 == 0:
                ends = (done / length, (done + piece) / length)
                (a, b), (c, d) = ((x0 + (x1 - x0) * share, y0 + (y1 - y0) * share) for share in ends)
                yield (a, b), (c, d)
            done, at = done + piece, at + max(piece, 1e-6)


def png(shapes: Sequence[Shape], width: int, height: int) -> bytes:
    """The picture as a PNG file."""
    canvas = _Canvas(width, height)
    for shape in shapes:
        if isinstance(shape, Area):
            canvas.area(shape)
        elif isinstance(shape, Line):
            canvas.line(shape)
        else:
            canvas.text(shape)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in canvas.rows), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
