"""A sweep as SVG: sessions per engine against inter-token latency, the band of the model's error and the target."""

from collections.abc import Sequence
from html import escape

from srvmod.capacity.layout import Per, Slo
from srvmod.capacity.planner import times_between
from srvmod.capacity.report import SweepPoint

WIDTH, HEIGHT = 820, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 46, 60
TICKS = 6


def sweep_svg(points: Sequence[SweepPoint], slo: Slo, title: str) -> str:
    """The picture of a sweep. The curve ends where latency can't be told any more."""
    told = [point for point in points if not point.state.saturated]
    most_x = max(point.sessions for point in points)
    highs = [times_between(point.state.itl(slo.per)).high for point in told]
    most_y = max([slo.itl_p95 * 1.4, *highs])

    def x(sessions: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * sessions / most_x

    def y(ms: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ms / most_y

    def path(values: Sequence[tuple[int, float]]) -> str:
        return " ".join(f"{x(sessions):.1f},{y(ms):.1f}" for sessions, ms in values)

    low = [(point.sessions, times_between(point.state.itl(slo.per)).low) for point in told]
    high = [(point.sessions, times_between(point.state.itl(slo.per)).high) for point in told]
    p95 = [(point.sessions, float(point.state.itl(slo.per))) for point in told]
    mean = [(point.sessions, float(point.state.itl_mean_ms)) for point in told]
    what = "a request's mean gap" if slo.per is Per.REQUEST else "single gaps"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for tick in range(TICKS + 1):
        sessions, ms = most_x * tick / TICKS, most_y * tick / TICKS
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ms):.1f}" y2="{y(ms):.1f}" stroke="#ddd"/>',
            f'<text x="{LEFT - 8}" y="{y(ms) + 4:.1f}" text-anchor="end">{ms:.0f}</text>',
            f'<text x="{x(sessions):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{sessions:.0f}</text>',
        ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts += [
        f'<polygon points="{path([*low, *reversed(high)])}" fill="#1f77b4" fill-opacity="0.18"/>',
        f'<polyline points="{path(p95)}" fill="none" stroke="#1f77b4" stroke-width="2"/>',
        f'<polyline points="{path(mean)}" fill="none" stroke="#1f77b4" stroke-width="1" stroke-dasharray="4 3"/>',
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(slo.itl_p95):.1f}" y2="{y(slo.itl_p95):.1f}" '
        'stroke="#d62728" stroke-width="1.5"/>',
        f'<text x="{LEFT + 6}" y="{y(slo.itl_p95) - 6:.1f}" fill="#d62728">'
        f"target: p95 of {what} at most {slo.itl_p95:g} ms</text>",
        f'<text x="{middle}" y="{HEIGHT - 22}" text-anchor="middle">sessions per engine</text>',
        f'<text x="18" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 18 {HEIGHT / 2})">'
        "inter-token latency, ms</text>",
        f'<text x="{LEFT}" y="{HEIGHT - 6}" font-size="11">line: p95 of {what}, with what 80 % of unseen '
        "measurements lay within; dashed: mean; no line near saturation</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
