"""A bar of parts, with what the colours mean under it: HTML that is read in parts where colours and widths are taken out."""

import html
from typing import NamedTuple, Sequence


class Part(NamedTuple):
    name: str
    size_bytes: int
    colour: str


def bar(parts: Sequence[Part], labels: Sequence[str]) -> str:
    """Widths are as the bytes are; a part that is there has at least a hairline."""
    total = sum(part.size_bytes for part in parts) or 1
    pieces = "".join(f'<div title="{html.escape(part.name)}" style="flex:{part.size_bytes / total:.5f};min-width:1px;'
                     f'background:{part.colour}"></div>' for part in parts)
    names = " ".join(f'<span style="margin-right:12px"><span style="color:{part.colour}">&#9632;</span> {html.escape(label)}</span>'
                     for part, label in zip(parts, labels))
    return f'<div style="display:flex;height:22px;max-width:720px;margin:4px 0">{pieces}</div><div>{names}</div>'
