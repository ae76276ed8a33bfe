"""What a change writes into the program's source, at the call that was under way when it found its place.

    edit = keywords(fused="True")
    edit(source, call)        # pieces of source.py; None: it cannot be written there

Each of these makes such an edit, or is one. What they write does what the change does from outside.
"""

import ast
import builtins

LOOPS = (ast.For, ast.While)


def at_call(edit):
    """Of the place of one call."""

    def placed(source, spans):
        call = source.call(spans[0])
        return call and edit(source, call)

    return placed


def nowhere(source, call):
    """It cannot be written."""
    return None


def keywords(function, **given):
    """Arguments by name of a call of that name, in the place of those of the same name."""

    def edit(source, call):
        if _last(call.func) != function or any(one.arg is None for one in call.keywords):
            return None  # what **options has is not known
        known = {one.arg: one.value for one in call.keywords}
        pieces = [source.replaced(known[name], text) for name, text in given.items() if name in known]
        missing = ["%s=%s" % (name, text) for name, text in given.items() if name not in known]
        return pieces + ([source.argument(call, ", ".join(missing))] if missing else [])

    return edit


def behind(text):
    """Right behind the call of a module: ".cpu()"."""

    def edit(source, call):
        is_module = not (isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id))  # map() gives something else
        return [(source.end(call), source.end(call), text.encode())] if is_module else None

    return edit


def ahead(methods, text, module):
    """Right before one of these methods is called: ".to(torch.bfloat16)"."""

    def edit(source, call):
        if not any(_is_method(call, method) for method in methods) or str(_last(call.func.value))[:1].isupper():
            return None  # a function of a class, which is given the value
        at = source.text.rindex(b".", source.end(call.func.value), source.end(call.func))
        return _all([(at, at, text.encode())], source.imported(module))

    return edit


def each(names, text):
    """Right behind some of the arguments, by place or by name, each of which is a variable: what it is now stays alive in the call."""

    def edit(source, call):
        given = dict(enumerate(call.args))
        given.update({one.arg: one.value for one in call.keywords})
        chosen = [given.get(name) for name in names]
        if any(isinstance(one, ast.Starred) for one in call.args) or not all(isinstance(one, ast.Name) for one in chosen):
            return None
        return [(source.end(one), source.end(one), text.encode()) for one in chosen]

    return edit


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


def before_loop(text, needs=None, makes=None):
    """Lines before the outermost loop that calls a variable and does not make it, which is `%s` in them. They make a variable that is new."""

    def edit(source, call):
        if not isinstance(call.func, ast.Name) or makes in source.names():
            return None
        loop, found = source.around(call, LOOPS), None
        while loop is not None and not _makes(loop, call.func.id):
            found, loop = loop, source.around(source.parents[loop], LOOPS)
        if found is None:
            return None
        return _all([source.line(found, text.replace("%s", call.func.id))], source.imported(needs) if needs else [])

    return edit


def _makes(node, name):
    return any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in ast.walk(node))


def renamed(old, new, module, kept, by_place):
    """Another class in the place of `old`, which takes these arguments by name, and so many of the first by place."""

    def edit(source, call):
        if _last(call.func) != old or any(one.arg not in kept for one in call.keywords):
            return None
        if len(call.args) > by_place or any(isinstance(one, ast.Starred) for one in call.args):
            return None
        return _all([source.replaced(call.func, new)], source.imported(module))

    return edit


def _last(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def until_backward(context):
    """The statements from one call to the one before backward in a context of torch. Its places: that call, backward."""

    def edit(source, spans):
        calls = [source.call(span) for span in spans]
        if None in calls:
            return None
        first, last = map(source.statement, calls)
        block = source.block(first) if first is not None else []
        if last not in block or block.index(last) <= block.index(first) or not _comes_first(source, calls[0], first):
            return None
        inner = block[block.index(first):block.index(last)]
        if any(isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for one in inner):
            return None
        heads = ["with %s:" % context] + [""] * (len(inner) - 1)
        return _all(source.imported("torch"), *map(source.indented, inner, heads))

    return edit


def _comes_first(source, call, statement):
    """Of the calls of a statement: what comes before it moves tensors alone."""
    before = (one for one in ast.walk(statement) if isinstance(one, ast.Call) and one is not call and source.end(one) <= source.end(call))
    return all(isinstance(one.func, ast.Attribute) and one.func.attr in ("cuda", "to") for one in before)


def deleted_behind(names):
    """`del` of variables behind a call, where each is made anew before it in every turn of its loop, and nothing else reads them."""

    def edit(source, call):
        statement = source.statement(call)
        loop = source.parents.get(statement)
        if not isinstance(loop, LOOPS) or statement not in loop.body:
            return None
        for name in names:
            used = [one for one in ast.walk(source.tree) if isinstance(one, ast.Name) and one.id == name]
            first = min(used, key=source.begin, default=None)
            made = source.statement(first) if first is not None else None
            if made not in loop.body or not isinstance(first.ctx, ast.Store):
                return None
            others = [source.begin(one) for one in used if not isinstance(one.ctx, ast.Store)]
            if any(not source.end(made) < one < source.begin(statement) for one in others):
                return None
        return [source.line(statement, "del %s" % ", ".join(names), is_behind=True)]

    return edit


def beside(methods, before, behind, name, function):
    """Lines before and behind the statement that calls one of a variable's methods, which is `%s` in them. They call a function that the file gets."""

    def edit(source, call):
        statement = source.statement(call)
        if statement is None or not any(_is_method(call, method) for method in methods) or not isinstance(call.func.value, ast.Name):
            return None
        defined, owner = source.function(statement, name, function), call.func.value.id
        first, last = [source.line(statement, text.replace("%s", owner), text is behind) for text in (before, behind)]
        if defined is None:
            return None
        written = [defined, first]
        if defined[0] == first[0]:  # the statement is the file's own: both come right before it
            written = [(first[0], first[0], defined[2] + first[2])]
        return _all(written, [last] if behind else [], source.imported("torch"))

    return edit


def calls_instead(old, name, function):
    """A call with two arguments by place, of a function that the file gets."""

    def edit(source, call):
        statement = source.statement(call)
        if statement is None or _last(call.func) != old or len(call.args) != 2 or call.keywords:
            return None
        return _all([source.replaced(call.func, name)], [source.function(statement, name, function)], source.imported("torch"))

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


def some_through_checkpoint(which, blocks):
    """The same of some blocks, where a loop goes over all of the list: "% 2 == 0" of their places."""

    def edit(source, call):
        loop = source.around(call, ast.For)
        if loop is None or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Attribute):
            return None
        if _last(loop.iter) != blocks or _last(call.func) != loop.target.id or not isinstance(call.func, ast.Name) or not call.args:
            return None
        name, counts = _counted(source, loop, ("index", "index_of_block", "place"), 0)
        inside = source.words(call)[len(source.words(call.func)):].strip()[1:-1].rstrip(", ")
        text = "torch.utils.checkpoint.checkpoint(%s, %s, use_reentrant=False) if %s %s else %s" % (
            call.func.id, inside, name, which, source.words(call))
        is_whole = getattr(source.statement(call), "value", None) is call
        return _all([source.replaced(call, text if is_whole else "(%s)" % text)], counts, source.imported("torch.utils.checkpoint"))

    return edit


def collated(name, more, function):
    """collate_fn of a DataLoader through a class that the file gets."""

    def edit(source, call):
        given = {one.arg: one.value for one in call.keywords}
        defined = source.function(call, name, function)
        if _last(call.func) != "DataLoader" or defined is None or None in given or len(call.args) > 6:
            return None  # what **options has is not known
        if any(isinstance(one, ast.Starred) for one in call.args):
            return None
        old = given.get("collate_fn")
        is_default = old is None or isinstance(old, ast.Constant)
        text = "%s(%s, %d)" % (name, "torch.utils.data.default_collate" if is_default else source.words(old), more)
        written = source.argument(call, "collate_fn=" + text) if old is None else source.replaced(old, text)
        return _all([defined, written], source.imported("torch") if is_default else [])

    return edit


def smaller_batch(count):
    """batch_size of a DataLoader."""

    def edit(source, call):
        if _last(call.func) != "DataLoader":
            return None
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
        name, counts = _counted(source, loop, ("part", "part_of_batch", "part_of_a_batch"), 1)
        return _all(smaller_batch(count)(source, made), counts, smaller_loss(count)(source, backward),
                    _waiting(source, waiting, backward, "if %s %%%% %d == %%d:" % (name, count)))

    return edit


def _is_in(source, call, loop):
    while call is not None and call is not loop:
        call = source.around(source.parents.get(call), ast.For)
    return call is loop


def _counted(source, loop, names, first):
    """(the name of the count of a loop, the first that is free, and the pieces that make the loop count from `first`)."""
    name = next(name for name in names if name not in source.names())
    target = source.words(loop.target)
    if isinstance(loop.target, ast.Tuple) and not target.startswith("("):
        target = "(%s)" % target
    begin, end = source.begin(loop.iter), source.end(loop.iter)  # between them a DataLoader may be made
    return name, [source.replaced(loop.target, "%s, %s" % (name, target)), (begin, begin, b"enumerate("), (end, end, b", %d)" % first if first else b")")]


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
