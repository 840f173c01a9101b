"""A chart as data, its drawing as SVG, and the same numbers as a table.

A series is distinguished by the shape of its points, the pattern of its line and its name at the
line's end; colour only repeats it. The width is that of a phone, so that text stays readable; wider
screens show several charts side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 380, 270
_LEFT, _RIGHT, _TOP = 58, 104, 28
_LABEL_HEIGHT = 14  # pixels that the name of a series needs
_TURNED_FROM = 4  # as many categories no longer fit side by side
_RADIUS = 4.5
_ASIDE = 5  # pixels by which the points of one category stand beside each other
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a category, with its spread; all three are equal if no spread was measured."""

    at: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name; `style` selects shape and pattern, the same in all charts of a page."""

    name: str
    style: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its categories from left to right, and values upwards.

    `label` formats a value with its unit, `even` is the value of no difference. A logarithmic chart
    leaves out values that are not positive. Points that are not `joined` have a baseline each,
    and `note` names them. `missing` says why a series has no value at a category.
    """

    key: str
    title: str
    description: str
    across: str
    categories: tuple[str, ...]
    upwards: str
    series: tuple[Series, ...]
    label: Callable[[float], str]
    log: bool = False
    even: float | None = None
    joined: bool = True
    note: str = ""
    missing: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def svg(self) -> str:
        """Return the drawing."""
        return draw(self)

    @property
    def table(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return a row per category with each series' value, or the reason for its absence, or a
        dash.
        """
        by_place = [(one.name, {p.at: p for p in one.points}) for one in self.series]
        return tuple(
            (
                category,
                tuple(
                    _cell(points[at], self.label) if at in points else self._none(name, at)
                    for name, points in by_place
                ),
            )
            for at, category in enumerate(self.categories)
        )

    def _none(self, series: str, at: int) -> str:
        nothing = "–"  # noqa: RUF001 (an en dash reads as "nothing" in a table)
        return self.missing.get((series, at), nothing)


def _cell(point: Point, label: Callable[[float], str]) -> str:
    if point.low == point.high:
        return label(point.value)
    return f"{label(point.value)} ({label(point.low)} to {label(point.high)})"


@dataclass(frozen=True, slots=True)
class _Scale:
    """The mapping from values and categories to positions in the drawing."""

    low: float
    high: float
    log: bool
    categories: int
    bottom: float

    def y(self, value: float) -> float:
        low, high, at = (self._shown(v) for v in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(self.bottom - share * (self.bottom - _TOP), 1)

    def x(self, at: int) -> float:
        width = WIDTH - _LEFT - _RIGHT
        return round(_LEFT + width * (at + 0.5) / self.categories, 1)

    def _shown(self, value: float) -> float:
        return math.log10(value) if self.log else value


def draw(chart: Chart) -> str:
    """Return the chart as an SVG element, for a page that styles the classes `s0` to `s3`."""
    turned = len(chart.categories) >= _TURNED_FROM
    bottom = HEIGHT - (74 if turned else 46)
    marks = ticks(chart)
    scale = _Scale(marks[0], marks[-1], chart.log, max(1, len(chart.categories)), bottom)
    name = escape(chart.key)
    lines = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title {name}-about">',
        f'<title id="{name}-title">{escape(chart.title)}</title>',
        f'<desc id="{name}-about">{escape(chart.description)}</desc>',
        *_axes(chart, scale, marks, turned),
    ]
    middle = (len(chart.series) - 1) / 2
    for at, one in enumerate(chart.series):
        lines += _drawn(one, scale, chart, (at - middle) * _ASIDE)
    return "\n".join([*lines, *_names(chart, scale), "</svg>"])


def ticks(chart: Chart) -> list[float]:
    """Return at least three round values that enclose everything shown."""
    shown = [
        v
        for one in chart.series
        for p in one.points
        for v in (p.low, p.value, p.high)
        if not chart.log or v > 0
    ]
    shown += [] if chart.even is None else [chart.even]
    shown = shown or [1.0]
    return _decades(min(shown), max(shown)) if chart.log else _evenly(max(shown))


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = _STEPS if last - first <= 3 else (1,)
    found = [s * 10.0**e for e in range(first, last + 1) for s in steps]
    below = [v for v in found if v <= low] or found[:1]
    above = [v for v in found if v >= high] or found[-1:]
    kept = [v for v in found if below[-1] <= v <= above[0]]
    return kept if len(kept) > 1 else [kept[0], kept[0] * 10]


def _evenly(high: float) -> list[float]:
    """Return ticks from zero, because bars that do not begin at zero mislead."""
    if high <= 0:
        return [0.0, 1.0]
    rough = high / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(s * size for s in (1, 2, 5, 10) if s * size >= rough)
    return [i * step for i in range(math.ceil(high / step - 1e-9) + 1)]


def _axes(chart: Chart, scale: _Scale, marks: Sequence[float], turned: bool) -> Iterable[str]:
    right = WIDTH - _RIGHT
    for value in marks:
        y = scale.y(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        label = escape(chart.label(value))
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{label}</text>'
    if chart.even is not None:
        y = scale.y(chart.even)
        yield f'<line class="even" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
    for at, category in enumerate(chart.categories):
        x, y = scale.x(at), scale.bottom + 16
        how = (
            f'text-anchor="end" transform="rotate(-45 {x} {y})"'
            if turned
            else 'text-anchor="middle"'
        )
        yield f'<text x="{x}" y="{y}" {how}>{escape(category)}</text>'
    middle = (_LEFT + right) / 2
    yield (
        f'<text class="axis" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(chart.across)}</text>"
    )
    yield f'<text class="axis" x="4" y="11">{escape(chart.upwards)}</text>'


def _drawn(series: Series, scale: _Scale, chart: Chart, aside: float) -> Iterable[str]:
    points = [p for p in sorted(series.points, key=lambda p: p.at) if p.value > 0 or not chart.log]
    kind = f"s{series.style % 4}"
    dashes = _DASHES[series.style % 4]
    pattern = f' stroke-dasharray="{dashes}"' if dashes else ""
    for run in _runs(points) if chart.joined else ():
        if len(run) > 1:
            path = " ".join(f"{scale.x(p.at) + aside},{scale.y(p.value)}" for p in run)
            yield f'<polyline class="{kind}" points="{path}"{pattern}/>'
    for point in points:
        x, y = scale.x(point.at) + aside, scale.y(point.value)
        low = scale.y(max(point.low, scale.low))
        high = scale.y(min(point.high, scale.high))
        if low != high:
            ends = "".join(f"M{x - 3},{end}H{x + 3}" for end in (low, high))
            yield f'<path class="spread {kind}" d="M{x},{low}V{high}{ends}"/>'
        yield f'<path class="point {kind}" d="{_shape(series.style, x, y)}"/>'


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Return points at neighbouring categories: no line crosses what was not measured."""
    runs: list[list[Point]] = []
    for point in points:
        if runs and runs[-1][-1].at + 1 == point.at:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _shape(style: int, x: float, y: float) -> str:
    r = _RADIUS
    match style % 4:
        case 0:
            return f"M{x - r},{y}a{r},{r} 0 1 0 {2 * r},0a{r},{r} 0 1 0 {-2 * r},0Z"
        case 1:
            return f"M{x - r},{y - r}h{2 * r}v{2 * r}h{-2 * r}Z"
        case 2:
            return f"M{x},{y - r - 1}l{r + 1},{2 * r}h{-2 * r - 2}Z"
    return f"M{x},{y - r - 1}l{r + 1},{r + 1}l{-r - 1},{r + 1}l{-r - 1},{-r - 1}Z"


def _names(chart: Chart, scale: _Scale) -> Iterable[str]:
    """Yield each series' marker and name, near the height of its last point."""
    ends = [
        (scale.y(last.value), one)
        for one in chart.series
        if one.points and ((last := max(one.points, key=lambda p: p.at)).value > 0 or not chart.log)
    ]
    placed: list[tuple[float, Series]] = []
    for y, one in sorted(ends, key=lambda item: item[0]):
        placed.append((max(y, placed[-1][0] + _LABEL_HEIGHT if placed else _TOP), one))
    over = max(0.0, placed[-1][0] - scale.bottom) if placed else 0.0
    x = WIDTH - _RIGHT + 12
    for at, one in placed:
        y, kind = round(at - over, 1), f"s{one.style % 4}"
        name = escape(one.name)
        yield f'<path class="point {kind}" d="{_shape(one.style, x, y)}"/>'
        yield f'<text class="name" x="{x + 9}" y="{y + 4}">{name}</text>'
