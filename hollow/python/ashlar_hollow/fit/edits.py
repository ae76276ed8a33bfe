"""What a change writes into the program's source, at the call that was under way when it found its place.

    edit = keywords(fused="True")
    edit(source, call)        # pieces of source.py; None: it cannot be written there

Each of these makes such an edit, or is one. What they write does what the change does from outside.
"""

import ast


def at_call(edit):
    """Of the place of one call."""

    def placed(source, spans):
        call = source.call(spans[0])
        return call and edit(source, call)

    return placed


def keywords(**given):
    """Arguments by name, in the place of those of the same name."""

    def edit(source, call):
        if any(one.arg is None for one in call.keywords):
            return None  # what **options has is not known
        known = {one.arg: one.value for one in call.keywords}
        pieces = [source.replaced(known[name], text) for name, text in given.items() if name in known]
        missing = ["%s=%s" % (name, text) for name, text in given.items() if name not in known]
        return pieces + ([source.argument(call, ", ".join(missing))] if missing else [])

    return edit


def behind(text):
    """Right behind the call: ".cpu()"."""
    return lambda source, call: [(source.end(call), source.end(call), text.encode())]


def within(context):
    """The call's statement in a context of torch."""

    def edit(source, call):
        return _all(source.indented(source.statement(call), "with %s:" % context), source.imported("torch"))

    return edit


def before(text, module):
    """A line before the call's statement, which needs a module."""

    def edit(source, call):
        statement = source.statement(call)
        return statement and _all([source.line(statement, text)], source.imported(module))

    return edit


def before_loop(text):
    """A line before the loop that the call lies in; `%s` in it is the called variable."""

    def edit(source, call):
        loop = source.around(call, (ast.For, ast.While))
        while loop is not None and source.around(source.parents[loop], (ast.For, ast.While)) is not None:
            loop = source.around(source.parents[loop], (ast.For, ast.While))
        if loop is None or not isinstance(call.func, ast.Name):
            return None
        return [source.line(loop, text % call.func.id)]

    return edit


def zero_right_behind(source, call):
    """optimizer.zero_grad() behind optimizer.step()."""
    statement = source.statement(call)
    if statement is None or not _is_method(call, "step") or call.args or call.keywords:
        return None
    return [source.line(statement, "%s.zero_grad()" % source.words(call.func.value), is_behind=True)]


def through_checkpoint(source, call):
    """checkpoint(block, x) in the place of block(x), where a loop goes over the blocks."""
    loop = source.around(call, ast.For)
    targets = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)} if loop is not None else ()
    if not isinstance(call.func, ast.Name) or call.func.id not in targets or not call.args:
        return None
    inside = source.text.index(b"(", source.end(call.func)) + 1
    return _all(
        [source.replaced(call.func, "torch.utils.checkpoint.checkpoint"), (inside, inside, ("%s, " % call.func.id).encode())],
        [source.argument(call, "use_reentrant=False")],
        source.imported("torch.utils.checkpoint"),
    )


def smaller_batch(count):
    """batch_size of a DataLoader."""

    def edit(source, call):
        size = next((one.value for one in call.keywords if one.arg == "batch_size"), None)
        if size is None and len(call.args) > 1:
            size = call.args[1]
        if size is None:
            return None
        if isinstance(size, ast.Constant) and isinstance(size.value, int):
            return [source.replaced(size, str(-(-size.value // count)))]
        return [source.replaced(size, "(%s) // %d" % (source.words(size), count))]

    return edit


def smaller_loss(count):
    """The loss that goes backward."""

    def edit(source, call):
        if _is_method(call, "backward") and not call.args and not call.keywords:
            return [source.replaced(call.func.value, "(%s / %d)" % (source.words(call.func.value), count))]
        if _is_method(call, "backward") and len(call.args) == 1:  # accelerator.backward(loss)
            return [source.replaced(call.args[0], "%s / %d" % (source.words(call.args[0]), count))]
        return None

    return edit


def in_parts(count):
    """A loop whose batches come in parts. Its places: the DataLoader that is made, the loop, backward, and all that waits for a last part."""

    def edit(source, spans):
        loop = source.loop_of(spans[1])
        made, backward, waiting = source.call(spans[0]), source.call(spans[2]), [source.call(span) for span in spans[3:]]
        if loop is None or made is None or not waiting or not all(_is_in(source, one, loop) for one in [backward] + waiting):
            return None
        name, counts = _counted(source, loop)
        return _all(smaller_batch(count)(source, made), counts, smaller_loss(count)(source, backward),
                    _waiting(source, waiting, backward, "if %s %%%% %d == %%d:" % (name, count)))

    return edit


def _is_in(source, call, loop):
    while call is not None and call is not loop:
        call = source.around(source.parents.get(call), ast.For)
    return call is loop


def _counted(source, loop):
    """(the name of the part under way, from 1, and the pieces that make the loop count it)."""
    name = next(name for name in ("part", "part_of_batch", "part_of_a_batch") if name not in source.names())
    target = source.words(loop.target)
    if isinstance(loop.target, ast.Tuple) and not target.startswith("("):
        target = "(%s)" % target
    begin, end = source.begin(loop.iter), source.end(loop.iter)  # between them a DataLoader may be made
    return name, [source.replaced(loop.target, "%s, %s" % (name, target)), (begin, begin, b"enumerate("), (end, end, b", 1)")]


def _waiting(source, calls, backward, head):
    """Neighbours in one block. What comes before backward is for the first part, the rest for the last. A value that is used later is not left out."""
    statements = sorted({source.statement(call) for call in calls} - {None}, key=lambda one: one.lineno)
    if len({call.lineno for call in calls}) != len(statements) or not all(isinstance(one, ast.Expr) for one in statements):
        return None
    pieces, last = [], None
    for one in statements:
        is_next = last is not None and one.lineno == last.end_lineno + 1 and one.col_offset == last.col_offset
        found = source.indented(one, "" if is_next else head % (1 if one.lineno < backward.lineno else 0))
        if found is None:
            return None
        pieces, last = pieces + found, one
    return pieces


def _is_method(call, name):
    return isinstance(call.func, ast.Attribute) and call.func.attr == name


def _all(*parts):
    """The pieces of all; None where one of them has none."""
    return None if any(part is None or None in part for part in parts) else [piece for part in parts for piece in part]
