"""What stands on what, from docs/internals/floors.md and the sources: which folders a changed file can change.

A node is a folder of the block ```floors, a folder of tests, or a name of the block ```reads. Its arrows:

- of a folder of the floors: what the block says;
- of tests and benches, which may include everything: the folders of what their sources include, and of the files that they
  name behind ASHLAR_SOURCE_DIR;
- and what the block ```reads adds: what is started or read.
"""

import dataclasses
import pathlib
import re

import tree  # noqa: F401  so that the lints are found
import floors
import lint_tree

READ_LINE = re.compile(r"^(\S+)\s+<-\s*(.*)$")
NAMED_FILE = re.compile(r'ASHLAR_SOURCE_DIR\)?[^"\n]*"/([\w./-]+)')
ALL, NONE, PART = "all", "none", "part/"  # names of ```reads that are no folder


class GraphError(Exception):
    """A line that cannot be read: what, where, how to fix it."""


def reads_of(root):
    """{name: [names]} of the block ```reads."""
    found, inside = {}, False
    for number, text in lint_tree.lines(root, floors.FLOORS_FILE):
        if text.startswith("```"):
            inside = text == "```reads"
        elif inside and text.strip():
            match = READ_LINE.match(text)
            if not match or match[1] in found:
                raise GraphError(f"{floors.FLOORS_FILE}:{number}: '{text}' is not 'name <- names', each name once")
            found[match[1]] = match[2].split()
    for name, targets in found.items():
        for target in targets:
            if not (pathlib.Path(root) / target).exists():
                raise GraphError(f"{floors.FLOORS_FILE}: {name} <- {target}: there is no such file or folder: mend the line")
    return found


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


@dataclasses.dataclass
class FolderGraph:
    arrows: dict  # node -> the nodes that it includes, starts or reads
    source_folders: set  # those that hold sources themselves: of the floors, or of tests
    parts: dict  # deep part -> the files and folders whose own change asks for it
    whole: list  # what changes everything: the build system, the floors, the gate
    unseen: list  # what no test reads

    def add_nodes(self, names):
        """What lies in a source folder belongs to it; another file or folder is a node of its own."""
        for name in names:
            if not any(str(parent) in self.source_folders for parent in pathlib.PurePath(name).parents):
                self.arrows.setdefault(name, set())

    def below(self, folder):
        return {node for node in self.arrows if is_below(node, folder)}

    def nodes_of(self, path):
        """The nodes that a file belongs to: the nearest, and for a file beside source folders, such as analyzer/CMakeLists.txt,
        all of those; none where nothing is known."""
        places = [path, *map(str, pathlib.PurePath(path).parents)]
        nearest = next((place for place in places if place in self.arrows), None)
        beside = nearest not in self.source_folders and nearest in (None, path, places[1]) and places[1] != "."
        return ({nearest} - {None}) | (self.below(places[1]) & self.source_folders if beside else set())

    def above(self, changed):
        """The nodes, and all that stand on them. A test stands on what its sources include, not on the tests beside those: from
        a folder of tests the way goes on only where it changed itself."""
        reached, waiting = set(changed), list(changed)
        while waiting:
            node = waiting.pop()
            for other, arrows in self.arrows.items():
                if node in arrows and other not in reached and (node in changed or not is_below(node, "tests")):
                    reached.add(other)
                    waiting.append(other)
        return reached


def test_folders(root):
    """tests/x, and a folder further down that has a CMakeLists.txt of its own."""
    tests = pathlib.Path(root) / "tests"
    own = [path.parent for path in tests.glob("*/**/CMakeLists.txt")]
    first = [path for path in tests.iterdir() if path.is_dir() and path.name not in lint_tree.SKIPPED_FOLDERS]
    return sorted({str(path.relative_to(root)) for path in own + first}) if tests.is_dir() else []


def read_graph(root):
    table, findings = floors.read_floors(root)
    if findings:
        raise GraphError(str(findings[0]))
    reads = reads_of(root)
    source_folders = set(table) | set(test_folders(root))
    free = {name for name, floor in table.items() if floor.used}  # those with `*`
    arrows = {name: set() if name in free else set(table[name].arrows) if name in table else set() for name in source_folders}
    parts = {name[len(PART):]: targets for name, targets in reads.items() if name.startswith(PART)}
    graph = FolderGraph(arrows, source_folders, parts, reads.pop(ALL, []), reads.pop(NONE, []))
    for name, targets in reads.items():
        graph.add_nodes(targets if name.startswith(PART) else [name, *targets])
    add_sources(root, graph, free)
    for name in set(reads) & set(arrows):
        for target in reads[name]:
            arrows[name] |= (graph.below(target) or graph.nodes_of(target)) - {name}
    return graph


def add_sources(root, graph, free):
    """The arrows of tests and benches, from their sources and from the headers of tests that those include."""
    includes = Includes(root)
    for path in lint_tree.files(root, lint_tree.CODE_SUFFIXES):
        for node in graph.nodes_of(path):
            if any(is_below(node, name) for name in free):
                targets = includes.of(path)
                graph.add_nodes(targets)
                graph.arrows[node] |= set().union(*map(graph.nodes_of, targets)) - {node}


class Includes:
    """The files of ours that a file includes or names, by way of others too, and itself."""

    def __init__(self, root):
        self.root, self.direct = pathlib.Path(root), {}

    def of(self, path):
        found, waiting = {path}, [path]
        while waiting:
            place = waiting.pop()
            if place not in self.direct:
                self.direct[place] = self._targets(place) if (self.root / place).is_file() else set()
            new = self.direct[place] - found
            found |= new
            waiting += new
        return found

    def _targets(self, path):
        text = "\n".join(line for _, line in lint_tree.lines(self.root, path))
        included = [match[1] for match in map(floors.INCLUDE.match, text.splitlines()) if match]
        named = [name.rstrip("/") for name in NAMED_FILE.findall(text)]
        found = {f"{floors.PUBLIC}/{target}" for target in included} | set(included) | set(named)
        return {target for target in found if (self.root / target).exists()}
