"""A bar of parts as inline SVG, with what the colours mean under it."""

import html
from typing import List, NamedTuple, Sequence

WIDTH, HEIGHT, ROW = 720, 22, 18


class Part(NamedTuple):
    name: str
    size_bytes: int
    colour: str


def bar(parts: Sequence[Part], labels: Sequence[str]) -> str:
    """Widths are as the bytes are; a part that is there has at least a hairline."""
    total = sum(part.size_bytes for part in parts) or 1
    pieces: List[str] = []
    at = 0.0
    for part in parts:
        width = WIDTH * part.size_bytes / total
        pieces.append(f'<rect x="{at:.1f}" y="0" width="{max(width, 1):.1f}" height="{HEIGHT}" fill="{part.colour}">'
                      f"<title>{html.escape(part.name)}</title></rect>")
        at += width
    for number, (part, label) in enumerate(zip(parts, labels)):
        x, y = 240 * (number % 3), HEIGHT + 8 + ROW * (number // 3)
        pieces.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{part.colour}"/>')
        pieces.append(f'<text x="{x + 15}" y="{y + 9}" font-size="12" fill="currentColor">{html.escape(label)}</text>')
    height = HEIGHT + 8 + ROW * ((len(parts) + 2) // 3)
    return (f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" style="max-width:{WIDTH}px;display:block" '
            f'font-family="system-ui,sans-serif" role="img">{"".join(pieces)}</svg>')
