"""A file of the program, as text that pieces can be put into: calls by their place, the statements around them.

    source = Source(text)                 # bytes; ValueError, SyntaxError: it cannot be changed by pieces
    call = source.call(span)              # the ast.Call that lies exactly there, or None
    source.indented(source.statement(call), "with torch.no_grad():")

A piece is (begin, end, text): offsets of bytes, and what comes in the place of what lies between them.
"""

import ast

STEP = b"    "
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)


class Source(object):
    def __init__(self, text):
        if b"\r" in text or b"\t" in text or not text.endswith(b"\n"):
            raise ValueError("its lines end or begin in another way")
        self.text = text
        self.tree = ast.parse(text.decode())
        self.starts = [0]
        for line in text.splitlines(True):
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    # --- what lies where ---

    def begin(self, node):
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node):
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def words(self, node):
        return self.text[self.begin(node):self.end(node)].decode()

    def call(self, span):
        """The call of (line, column, end line, end column): no two end at one place."""
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return next((one for one in calls if (one.end_lineno, one.end_col_offset) == span[2:]), None)

    def around(self, node, kinds):
        """The nearest of these kinds that it lies in, of the same function."""
        while node is not None and not isinstance(node, kinds):
            node = self.parents.get(node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not isinstance(node, kinds):
                return None
        return node

    def loop_of(self, span):
        """The for loop that starts to go over what lies there; or is all that lies there."""
        place = self.starts[span[0] - 1] + span[1], self.starts[span[2] - 1] + span[3]

        def starts(loop):
            return place == (self.begin(loop), self.end(loop)) or self.begin(loop.iter) <= place[0] and place[1] <= self.end(loop.iter)

        return next((node for node in ast.walk(self.tree) if isinstance(node, ast.For) and starts(node)), None)

    def statement(self, node):
        """The simple statement that it is part of, where that has its lines for itself; else None."""
        found = self.around(node, SIMPLE)
        if found is None:
            return None
        first, last = self.starts[found.lineno - 1], self.starts[found.end_lineno]
        behind = self.text[self.end(found):last].strip()
        is_alone = not self.text[first:self.begin(found)].strip() and (not behind or behind.startswith(b"#"))
        return found if is_alone else None

    def names(self):
        made = {node.name for node in ast.walk(self.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
        return made | {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}

    def block(self, statement):
        """The statements of its block, itself among them."""
        parent = self.parents[statement]
        lists = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        return next((one for one in lists if isinstance(one, list) and statement in one), [])

    def outermost(self, node):
        """The statement of the file itself that it lies in."""
        while self.parents[node] is not self.tree:
            node = self.parents[node]
        return node

    # --- pieces ---

    def replaced(self, node, text):
        return self.begin(node), self.end(node), text.encode()

    def argument(self, call, text):
        """Behind the last argument; None where that cannot be told."""
        close = self.end(call) - 1
        given = call.args + [one.value for one in call.keywords]
        if not given:
            return close, close, text.encode()
        last = max(self.end(one) for one in given)
        rest, has_remark, behind = self.text[last:close].rstrip().partition(b"#")
        rest = rest.rstrip()
        if last > close or has_remark and not all(line.strip().startswith(b"#") for line in behind.split(b"\n")[1:]):
            return None
        has_comma = rest.endswith(b",")
        at = last + len(rest)
        return at, at, (b" %s," if has_comma else b", %s") % text.encode()

    def line(self, statement, text, is_behind=False):
        """Lines of their own before the statement, or behind it."""
        first = min([statement.lineno] + [one.lineno for one in getattr(statement, "decorator_list", ())])
        at = self.starts[statement.end_lineno if is_behind else first - 1]
        shift = b" " * statement.col_offset
        return at, at, b"".join((shift + line if line else b"") + b"\n" for line in text.encode().split(b"\n"))

    def function(self, statement, name, text):
        """A function or a class before all that the statement lies in, of a name that the file has not; else None."""
        return None if name in self.names() else self.line(self.outermost(statement), text + "\n")

    def indented(self, statement, head):
        """`head` before a statement, which goes into its block; without a head it joins the one before. None where a text has several lines."""
        if statement is None or any(self.is_long_text(one) for one in ast.walk(statement)):
            return None
        lines = [self.starts[number - 1] for number in range(statement.lineno, statement.end_lineno + 1)]
        first = b" " * statement.col_offset + head.encode() + b"\n" if head else b""
        return [(lines[0], lines[0], first + STEP)] + [(at, at, STEP) for at in lines[1:] if self.text[at:at + 1] != b"\n"]

    @staticmethod
    def is_long_text(node):
        is_text = isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        return is_text and node.end_lineno > node.lineno

    def imported(self, module):
        """No piece where the file imports it."""
        imports = [one for one in self.tree.body if isinstance(one, (ast.Import, ast.ImportFrom))]
        names = {alias.name for one in imports if isinstance(one, ast.Import) for alias in one.names if alias.asname is None}
        plain = [one for one in imports if getattr(one, "module", None) != "__future__"]
        if module in names:
            return []
        return [self.line(plain[0], "import %s" % module)] if plain else None


def put(text, pieces):
    """The text with the pieces in it; None where two of them want the same place. Arguments may follow each other."""
    end = len(text) + 1
    for begin, behind, new in sorted(set(pieces), reverse=True):
        if behind > end or begin == end and not new.startswith(b","):
            return None
        text, end = text[:begin] + new + text[behind:], begin
    return text
