"""Shapes of a picture, in pixels from the top left, and the same shapes as SVG. `png` draws them as PNG."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import TypeAlias

Place: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[int, int, int]


class Anchor(StrEnum):
    """Which part of a text is at its place; the value is SVG's."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True)
class Area:
    """A filled polygon; `cover` from 0 (nothing) to 1."""

    corners: Sequence[Place]
    colour: Colour
    cover: float


@dataclass(frozen=True)
class Line:
    """A line through places; `dash` is the length of its dashes and gaps, 0 for none."""

    places: Sequence[Place]
    colour: Colour
    width: float = 1.0
    dash: float = 0.0


@dataclass(frozen=True)
class Text:
    """One line of text on its base line; `upright` runs from below to above."""

    place: Place
    text: str
    colour: Colour
    anchor: Anchor = Anchor.START
    upright: bool = False


Shape: TypeAlias = Area | Line | Text


def svg(shapes: Sequence[Shape], width: int, height: int, title: str) -> str:
    """The picture as SVG text."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="DejaVu Sans Mono, monospace" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *(_element(shape) for shape in shapes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _element(shape: Shape) -> str:
    colour = "#{:02x}{:02x}{:02x}".format(*shape.colour)
    if isinstance(shape, Text):
        x, y = shape.place
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if shape.upright else ""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{shape.anchor}"'
        return f'<text {place} fill="{colour}"{turned}>{escape(shape.text)}</text>'
    if isinstance(shape, Area):
        return f'<polygon points="{_points(shape.corners)}" fill="{colour}" fill-opacity="{shape.cover:g}"/>'
    dashes = f' stroke-dasharray="{shape.dash:g}"' if shape.dash else ""
    return (
        f'<polyline points="{_points(shape.places)}" fill="none" stroke="{colour}" stroke-width="{shape.width:g}"'
        f"{dashes}/>"
    )


def _points(places: Sequence[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
