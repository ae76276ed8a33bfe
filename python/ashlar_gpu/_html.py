"""An answer as a notebook shows it: HTML that needs nothing from elsewhere, no script, colours that suit light and dark; and its
page in a frame where it has one. The cell, the verdict and what to do stand on top of both.

    _html.shown(answer)     # what _repr_html_ returns
    _html.page(answer)      # the HTML without a script
"""

import html
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Type

from ashlar_gpu import _cells, _frame
from ashlar_gpu._answer import Answer
from ashlar_gpu._html_bar import Part, bar
from ashlar_gpu.results.dry_run import Card, DryRun, Outcome
from ashlar_gpu.results.explanation import Accounting, Action, Cause, Explanation, WhatIf
from ashlar_gpu.results.sweep import Sweep

MOST = 40_000  # characters of an output, without the page's program
LEFT_OUT = ("The page is made small for the notebook: curves and maps of other settings are left out, and where it says so "
            'moments. .page shows the whole one, .page.save("page.html") writes it.')
BAD, GOOD, GREY = "#d1453b", "#2e8b57", "#8a8f98"
CELL = "padding:2px 12px 2px 0;white-space:nowrap;text-align:{}"
UNPROVEN = "not proven"  # of an action: JSON's word for what was not tried yet
UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size(value: Optional[int]) -> str:
    if value is None:
        return "?"
    for unit, name in UNITS:
        if abs(value) >= unit:
            return f"{value / unit:,.2f} {name}"
    return f"{value:,} B"


def shown(answer: Answer) -> str:
    """Raises nothing: a cell that shows an answer must not fail for it."""
    try:
        return _shown(answer)
    except Exception:  # an answer that was made by hand
        return _code([str(answer)])


def _shown(answer: Answer) -> str:
    whole = answer.page
    if whole is None:
        return page(answer)
    # Where frames are not shown, as on a site that shows notebooks, what stands around it is there.
    head, short = _div(_heading(answer) + _to_do(answer)), _div(_details("in short", _short(answer)) + _lines([LEFT_OUT]))
    frame = _frame.within(whole.html, MOST - len(head) - len(short))
    if frame is None:
        line = f'The page is {size(len(whole.html))}, too long for a notebook: .page.save("page.html") writes it.'
        return page(answer) + _div(_lines([line]))
    return head + frame + short


def page(answer: Answer) -> str:
    return _div(_heading(answer) + _to_do(answer) + _body(answer) + _whole(answer.text))


def _short(answer: Answer) -> str:
    return _body(answer) or _code([answer.text.strip()])


def _body(answer: Answer) -> str:
    return BODIES[type(answer)](answer) if type(answer) in BODIES else ""


def _div(inside: str) -> str:
    return f'<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;max-width:60em">{inside}</div>'


def _heading(answer: Answer) -> str:
    """The cell and the verdict."""
    cell = _cells.current()
    text, colour = HEADS.get(type(answer), _first_line)(answer)
    return _headline(f"{cell}: {text}" if cell else text, colour)


def _first_line(answer: Answer) -> Tuple[str, str]:
    lines = answer.text.strip().splitlines()
    return lines[0] if lines else "", GREY


def _text(value: object) -> str:
    return html.escape(str(value))


def _headline(text: str, colour: str) -> str:
    return (f'<div style="font-weight:600;border-left:4px solid {colour};padding-left:8px;margin:2px 0 6px">'
            f"{_text(text)}</div>")


def _title(text: str) -> str:
    return f'<div style="font-weight:600;margin:10px 0 2px">{_text(text)}</div>'


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"<div>{_text(line)}</div>" for line in lines)


def _code(lines: Iterable[str]) -> str:
    shown = _text("\n".join(lines))
    return ('<pre style="margin:2px 0 6px;padding:6px 8px;border:1px solid rgba(128,128,128,.4);border-radius:4px;'
            f'background:rgba(128,128,128,.08);color:inherit;white-space:pre-wrap">{shown}</pre>')


def _whole(text: str) -> str:
    if not text.strip():
        return ""
    return _details("the whole text", _code([text.strip()]))


def _details(summary: str, inside: str) -> str:
    return (f'<details style="margin-top:8px"><summary style="cursor:pointer;opacity:.8">{_text(summary)}</summary>'
            f"{inside}</details>")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Cells are HTML; the first `left` columns are text, the rest figures."""
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(f'<{tag} style="{CELL.format("left" if at < left else "right")}">{cell}</{tag}>'
                       for at, cell in enumerate(row))
    head = f"<tr>{cells([_text(one) for one in heads], 'th')}</tr>" if any(heads) else ""
    body = "".join(f'<tr style="background:none">{cells(row, "td")}</tr>' for row in rows)
    return f'<table style="border-collapse:collapse;border:none;margin:0;font-size:13px">{head}{body}</table>'


# --- an explanation ---

def parts_of(accounting: Accounting) -> List[Part]:
    """The device's memory, or what the allocator holds, in parts that sum up."""
    named = [("live tensors", accounting.live_bytes, "#3b78c4"), ("rounding", accounting.rounding_bytes, "#85aee0"),
             ("pending", accounting.pending_bytes, "#b59a3a"), ("stranded", accounting.stranded_bytes, BAD),
             ("private pools", accounting.private_pool_bytes, "#9a5fb5"), ("cached", accounting.whole_free_bytes, "#e0a13b"),
             ("outside", accounting.outside_bytes, "#6d7480"), ("free on the device", accounting.free_bytes, GOOD)]
    return [Part(name, value, colour) for name, value, colour in named if value]


def _verdict(answer: Explanation) -> Tuple[str, str]:
    return answer.headline, GOOD if answer.verdict in ("healthy", "unknown") else BAD


def _explanation(answer: Explanation) -> str:
    certain = "" if answer.verdict_certain or answer.verdict == "unknown" else " (not certain)"
    verdict = "another process or library" if answer.verdict == "outside" else answer.verdict.replace("_", " ")
    said = answer.evidence[0] if answer.evidence else ""
    out = _lines([f"{said}{certain}" if said.lower().startswith(verdict) else f"{verdict}{certain}: {said}"])
    parts = parts_of(answer.accounting)
    if parts:
        total = answer.accounting.total_bytes or answer.accounting.reserved_bytes
        out += _title(f"Where {size(total)} went" + (f" ({answer.moment})" if answer.moment else ""))
        out += bar(parts, [f"{one.name} {size(one.size_bytes)}" for one in parts])
    if answer.found:
        out += _title("Why") + _table(("", "", ""), [_cause(one) for one in answer.found[:5]], left=3)
    if answer.stacks:
        rows = [(_text(one.label), size(one.bytes), f"{one.blocks:,}") for one in answer.stacks[:6]]
        out += _title("Who holds it") + _table(("line", "bytes", "blocks"), rows)
    if answer.what_if:
        out += _title("What would have helped") + _settings(answer.what_if)
    is_said = not answer.what_if and answer.actions and (answer.advice or "").startswith(answer.actions[0].what or "-")
    return out + (_lines([answer.advice]) if answer.advice and not is_said else "")


def _to_do(answer: Answer) -> str:
    """FIX: a run, a replay or the bytes of the cause speak for it. TRY FIRST: a message alone. WOULD IT FIT, where that was asked."""
    explained = answer.explanation if isinstance(answer, DryRun) else answer
    if not isinstance(explained, Explanation):
        return ""
    elsewhere = explained.elsewhere
    asked = "" if elsewhere is None else _title("WOULD IT FIT") + _lines([elsewhere.sentence])
    if not explained.actions:
        return asked
    is_proven = explained.actions[0].proof != UNPROVEN
    title = _title("FIX") if is_proven else _title("TRY FIRST") + '<div style="opacity:.8">not tried yet</div>'
    return title + "".join(_action(one) for one in explained.actions) + asked


def _action(action: Action) -> str:
    known = [one for one in (action.proof if action.proof != UNPROVEN else None, action.gain) if one]
    gain = f'<div style="opacity:.8">{_text(": ".join(known))}</div>' if known else ""
    return _lines([action.what] if action.what else []) + (_code(action.lines) if action.lines else "") + gain


def _cause(cause: Cause) -> Tuple[str, str, str]:
    lines = f' <span style="opacity:.7">{_text(", ".join(cause.lines[:2]))}</span>' if cause.lines else ""
    return (_text(size(cause.bytes)), _text(cause.confidence or ""),
            f'<span style="white-space:normal">{_text(cause.sentence)}{lines}</span>')


def _settings(rows: Iterable[WhatIf]) -> str:
    shown = []
    for row in rows:
        name = _text(row.conf or "default") + (" (as recorded)" if row.is_recorded_setting else "")
        shown.append((name, size(row.peak_reserved_bytes), f"{row.driver_calls:,}", _ends(row)))
    return _table(("setting", "peak reserved", "driver calls", ""), shown)


def _ends(row: WhatIf) -> str:
    if row.ooms:
        return f'<span style="color:{BAD}">{row.ooms} out of memory</span>'
    projected = row.projected
    if row.gets_past and projected is not None and projected.ooms:
        return f'<span style="color:{BAD}">gets past, fails later</span>'
    return f'<span style="color:{GOOD}">fits</span>' if row.feasible else ""


# --- the others ---

def _dry_run_verdict(answer: DryRun) -> Tuple[str, str]:
    return f"Dry run: {_head(answer.text)}", {True: GOOD, False: BAD, None: GREY}[answer.fits]


def _dry_run(answer: DryRun) -> str:
    out = ""
    if answer.cards is not None:
        rows = [(_text(one.card + (" (no kernels)" if one.has_kernels is False else "")), size(one.total_bytes), _fits(one.default) if one.has_verdict else _unrun(one),
                 _fits(one.expandable), _fits(one.best_found)) for one in answer.cards.rows]
        out += _title("Which card is enough" + (" for what was seen" if answer.ended_early else "")) + _table(("card", "memory", "default", "expandable", "best found"), rows)
    if answer.made_up.total:
        out += _lines([f"{answer.made_up.total:,} values were made up: control flow may depend on them, see the text"])
    explained = answer.explanation
    return out + (_headline(*_verdict(explained)) + _explanation(explained) if explained is not None else "")


def _head(text: str) -> str:
    """The verdict of a report: its first lines, up to what is explained or how the program ended."""
    words: List[str] = []
    for line in text.splitlines():
        if not line.strip() or line.strip().startswith(("explained below:", "the program ended with exit code")):
            break
        words += line.split()
    return " ".join(words[2:])


def _unrun(card: Card) -> str:
    """No verdict: what the card that ran would do with as much memory."""
    spare = card.default.headroom_bytes
    return _text(f"as {card.ran_as} would run it: {'fails' if spare is None else f'{size(spare)} to spare'}")


def _fits(outcome: Optional[Outcome]) -> str:
    if outcome is None:
        return ""
    spare = "" if outcome.headroom_bytes is None else f" +{size(outcome.headroom_bytes)}"
    return f'<span style="color:{GOOD if outcome.fits else BAD}">{"fits" if outcome.fits else "fails"}</span>{spare}'


def _sweep(answer: Sweep) -> str:
    rows = []
    for row in answer.rows[:12]:
        peak = max((one.peak_reserved_bytes for one in row.traces), default=0)
        name = "as recorded" if row.conf is None else row.conf or "default"
        mark = " (recommended)" if row.is_recommended else ""
        fails = f'<span style="color:{BAD}">{row.failing_traces} fail</span>' if row.failing_traces else ""
        rows.append((_text(name + mark), size(peak), f"{row.retries:,}", f"{row.driver_calls:,}", fails))
    return (_code([answer.paste]) if answer.paste else "") + _table(("setting", "greatest peak", "retries", "driver calls", ""), rows)


HEADS: Dict[Type[Any], Callable[[Any], Tuple[str, str]]] = {
    Explanation: _verdict, DryRun: _dry_run_verdict,
    Sweep: lambda answer: (answer.advice, GOOD if answer.paste else GREY)}
BODIES: Dict[Type[Any], Callable[[Any], str]] = {Explanation: _explanation, DryRun: _dry_run, Sweep: _sweep}
