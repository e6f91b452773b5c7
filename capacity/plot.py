"""A sweep as a picture: sessions per engine against inter-token latency, the model's error and the target."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from srvmod.capacity.layout import Per, Slo
from srvmod.capacity.planner import times_between
from srvmod.capacity.png import png
from srvmod.capacity.report import SweepPoint
from srvmod.capacity.shapes import Anchor, Area, Line, Place, Shape, Text, svg

WIDTH, HEIGHT = 820, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 46, 78
TICKS = 6
BLACK: Final = (0, 0, 0)
GREY: Final = (221, 221, 221)
BLUE: Final = (31, 119, 180)
GREEN: Final = (44, 125, 44)
RED: Final = (190, 30, 30)


def sweep_svg(points: Sequence[SweepPoint], slo: Slo, title: str) -> str:
    """The picture of a sweep as SVG."""
    return svg(list(_shapes(points, slo, title)), WIDTH, HEIGHT, title)


def sweep_png(points: Sequence[SweepPoint], slo: Slo, title: str) -> bytes:
    """The picture of a sweep as PNG."""
    return png(list(_shapes(points, slo, title)), WIDTH, HEIGHT)


def tick_step(most: float) -> float:
    """A round distance (1, 2 or 5 times a power of ten) that divides a scale into about `TICKS` parts."""
    rough = most / TICKS
    power = 10 ** math.floor(math.log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if rough <= factor * power)


def _shapes(points: Sequence[SweepPoint], slo: Slo, title: str) -> Iterator[Shape]:
    """Curves end where latency can't be told any more."""
    told = [point for point in points if not point.state.saturated]
    p95 = [(point.sessions, times_between(point.state.itl(slo.per))) for point in told]
    step_x = tick_step(max(point.sessions for point in points))
    step_y = tick_step(max([slo.itl_p95 * 1.4, *(one.high for _, one in p95)]))
    most_x = step_x * math.ceil(max(point.sessions for point in points) / step_x)
    most_y = step_y * math.ceil(max([slo.itl_p95 * 1.4, *(one.high for _, one in p95)]) / step_y)

    def at(sessions: float, ms: float) -> Place:
        x = LEFT + (WIDTH - LEFT - RIGHT) * sessions / most_x
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ms / most_y

    yield Text((LEFT, 26), title, BLACK)
    for tick in range(round(most_y / step_y) + 1):
        ms = tick * step_y
        yield Line([at(0, ms), at(most_x, ms)], GREY)
        yield Text((LEFT - 8, at(0, ms)[1] + 4), f"{ms:g}", BLACK, Anchor.END)
    for tick in range(round(most_x / step_x) + 1):
        x, y = at(tick * step_x, 0)
        yield Line([(x, y), (x, y + 4)], BLACK)
        yield Text((x, y + 18), f"{tick * step_x:g}", BLACK, Anchor.MIDDLE)
    if told:
        low, high = [at(n, one.low) for n, one in p95], [at(n, one.high) for n, one in p95]
        yield Area([*low, *reversed(high)], BLUE, 0.18)
        yield Line([at(point.sessions, point.state.itl_mean_ms) for point in told], GREEN, 1.5, 5)
        yield Line([at(n, one.likely) for n, one in p95], BLUE, 2)
    yield Line([at(0, slo.itl_p95), at(most_x, slo.itl_p95)], RED, 1.5)
    within = [point.sessions for point in points if not point.missed]
    if within:
        x, y = at(max(within), 0)
        yield Line([(x, y), at(max(within), slo.itl_p95)], RED, 1, 3)
    what = "a request's mean gap" if slo.per is Per.REQUEST else "single gaps"
    label = f"target: p95 of {what} at most {slo.itl_p95:g} ms"
    below = bool(p95) and p95[-1][1].likely > slo.itl_p95
    yield Text((WIDTH - RIGHT - 6, at(0, slo.itl_p95)[1] + (16 if below else -6)), label, RED, Anchor.END)
    yield Text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 38), "sessions per engine", BLACK, Anchor.MIDDLE)
    yield Text((18, HEIGHT / 2), "inter-token latency, ms", BLACK, Anchor.MIDDLE, upright=True)
    yield Text((LEFT, HEIGHT - 22), f"blue: p95 of {what}, and what 80 % of unseen measurements lay within", BLUE)
    ends = "" if len(told) == len(points) else "; curves end near saturation"
    yield Text((LEFT, HEIGHT - 6), f"green: mean{ends}", GREEN)
