"""chart: the picture of `make bench`: p50 of whole commands as horizontal bars, written as plain SVG."""
import math
from html import escape

WIDTH, LEFT, RIGHT = 760, 130, 90
ROW, BAR, PANEL_TOP, PANEL_GAP = 24, 15, 70, 52
INK, FAINT, GRID = "#1f2328", "#656d76", "#d8dee4"
COLOURS = {"hutch run": "#d9622b", "fork+exec": "#8c959f"}
OTHER = "#a9b8c9"


def text(x: float, y: float, what: str, anchor: str = "start", size: int = 12, fill: str = INK,
         bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}"{weight}>'
            f"{escape(what)}</text>")


def milliseconds(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


class Scale:
    """Logarithmic: from fork+exec to a container engine it is more than two orders of magnitude."""

    def __init__(self, least: float, most: float) -> None:
        self.low = math.log10(least / 2)
        self.high = math.log10(most)
        self.ticks = [10.0**power for power in range(math.ceil(self.low), math.floor(self.high) + 1)]

    def x(self, value: float) -> float:
        return LEFT + (math.log10(value) - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)


def panel(title: str, rows: dict[str, float], scale: Scale, top: float) -> list[str]:
    bottom = top + len(rows) * ROW
    parts = [text(16, top - 12, title, bold=True, size=13)]
    for tick in scale.ticks:
        x = scale.x(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>')
        parts.append(text(x, bottom + 13, f"{tick:g} ms", "middle", 10, FAINT))
    for i, (name, value) in enumerate(sorted(rows.items(), key=lambda row: row[1])):
        y = top + i * ROW
        end = scale.x(value)
        ours = name == "hutch run"
        parts.append(text(LEFT - 8, y + 12, name, "end", bold=ours))
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{max(end - LEFT, 1):.1f}" height="{BAR}" rx="2" '
                     f'fill="{COLOURS.get(name, OTHER)}"/>')
        parts.append(text(end + 6, y + 12, milliseconds(value), bold=ours))
    return parts


def draw(panels: dict[str, dict[str, float]], note: str) -> str:
    """One panel per title; rows are name and milliseconds."""
    values = [value for rows in panels.values() for value in rows.values()]
    scale = Scale(min(values), max(values))
    parts = [text(16, 24, "Start a sandbox, run a command, be done: p50 of the whole command", size=15, bold=True)]
    top = PANEL_TOP
    for title, rows in panels.items():
        parts += panel(title, rows, scale, top)
        top += len(rows) * ROW + PANEL_GAP
    height = top - 4
    parts.append(text(16, height - 12, f"{note} Logarithmic scale; shorter is better.", size=10, fill=FAINT))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" '
            f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">\n'
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff" stroke="{GRID}"/>\n'
            + "\n".join(parts) + "\n</svg>\n")
