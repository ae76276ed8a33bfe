#!/usr/bin/env python3
"""Holds every source to the includes that it needs of the standard library and Abseil, directly or by headers of ours.

A compiler does not hold it to them: precompiled headers bring the common ones, and other libraries' headers bring more
than they promise. What a source needs of our own headers, a build file by file tells (the preset nocuda).
"""

import pathlib
import re

import lint_tree
from lint_tree import Finding, Sample

ROOTS = ("", "include")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
LINE_COMMENT = re.compile(r"//.*")
NAME = re.compile(r"\b(std|absl)::(\w+)")

# header: the names that it is for. Other headers that promise a name as well: ALSO.
HEADERS = {
    "algorithm": "sort stable_sort clamp find find_if any_of all_of none_of count_if lower_bound upper_bound reverse "
                 "max_element min_element partial_sort nth_element unique remove_if fill copy max min",
    "array": "array", "atomic": "atomic memory_order_relaxed", "bit": "bit_cast bit_width countl_zero countr_zero has_single_bit",
    "chrono": "chrono", "cmath": "sqrt exp log pow floor ceil isfinite isnan", "condition_variable": "condition_variable",
    "cstdint": "uint64_t int64_t uint32_t int32_t uint8_t uint16_t uintptr_t", "cstdio": "snprintf fprintf FILE fopen fputs",
    "cstdlib": "getenv abort strtod malloc", "cstring": "memcpy memset strlen memcmp", "deque": "deque",
    "exception": "exception_ptr terminate", "filesystem": "filesystem", "fstream": "ifstream ofstream",
    "functional": "function greater", "iostream": "cout cerr cin", "limits": "numeric_limits", "map": "map multimap",
    "memory": "unique_ptr shared_ptr make_unique make_shared weak_ptr", "mutex": "mutex lock_guard unique_lock call_once",
    "new": "bad_alloc nothrow", "numeric": "accumulate iota", "optional": "optional nullopt",
    "ostream": "ostream", "set": "set multiset", "sstream": "ostringstream istringstream stringstream",
    "stdexcept": "runtime_error logic_error", "string": "string to_string", "system_error": "error_code",
    "thread": "thread this_thread", "tuple": "tuple tie", "unordered_map": "unordered_map", "utility": "move pair exchange forward",
    "variant": "variant visit get_if holds_alternative monostate", "vector": "vector",
    "absl/container/btree_map.h": "btree_map", "absl/container/flat_hash_map.h": "flat_hash_map",
    "absl/container/flat_hash_set.h": "flat_hash_set", "absl/container/inlined_vector.h": "InlinedVector",
    "absl/functional/function_ref.h": "FunctionRef",
    "absl/status/status.h": "Status OkStatus InvalidArgumentError FailedPreconditionError InternalError OutOfRangeError "
                            "ResourceExhaustedError DataLossError UnavailableError UnimplementedError StatusCode",
    "absl/status/statusor.h": "StatusOr",
    "absl/strings/ascii.h": "ascii_isdigit ascii_isspace AsciiStrToLower StripAsciiWhitespace",
    "absl/strings/escaping.h": "CHexEscape", "absl/strings/match.h": "StrContains StartsWith EndsWith",
    "absl/strings/numbers.h": "SimpleAtoi SimpleAtod", "absl/strings/str_cat.h": "StrCat StrAppend Hex",
    "absl/strings/str_format.h": "StrFormat StrAppendFormat", "absl/strings/str_join.h": "StrJoin",
    "absl/strings/str_replace.h": "StrReplaceAll", "absl/strings/str_split.h": "StrSplit MaxSplits SkipEmpty",
    "absl/strings/string_view.h": "string_view", "absl/strings/strip.h": "StripPrefix StripSuffix ConsumePrefix ConsumeSuffix",
    "absl/types/span.h": "Span MakeSpan MakeConstSpan",
}
OWNER = {("absl" if "/" in header else "std", name): header for header, names in HEADERS.items() for name in names.split()}
# Headers that have what another is for: [iterator.range], [ios.base] and the like; StatusOr's is Status's.
ALSO = {
    "algorithm": set(), "utility": {"map", "vector", "memory", "string", "functional", "algorithm", "optional"},
    "ostream": {"iostream", "sstream", "fstream"}, "absl/status/status.h": {"absl/status/statusor.h"},
    "absl/strings/string_view.h": {"absl/strings/str_cat.h", "absl/strings/match.h", "absl/strings/str_format.h",
                                   "absl/strings/str_split.h", "absl/strings/ascii.h", "absl/strings/numbers.h",
                                   "absl/strings/strip.h", "absl/strings/str_join.h", "absl/status/status.h",
                                   "absl/status/statusor.h"},
}


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.foreign = {}  # path of ours: the headers of others that it and all that it includes include

    def code(self, path):
        return "\n".join(LINE_COMMENT.sub("", text) for _, text in lint_tree.lines(self.root, path))

    def ours(self, target):
        found = [prefix / target for prefix in map(pathlib.PurePath, ROOTS) if (self.root / prefix / target).is_file()]
        return str(found[0]) if found else None

    def included(self, path):
        if path not in self.foreign:
            self.foreign[path] = set()  # a circle of includes ends here
            headers = set()
            for target in INCLUDE.findall(self.code(path)):
                own = self.ours(target)
                headers |= self.included(own) if own else {target}
            self.foreign[path] = headers
        return self.foreign[path]


def missing(tree, path):
    """{header: a name that wants it}"""
    there = tree.included(path)
    wanted = {OWNER[name]: "::".join(name) for name in NAME.findall(tree.code(path)) if name in OWNER}
    return {header: name for header, name in wanted.items() if header not in there and not ALSO.get(header, set()) & there}


def check(root):
    tree = Tree(root)
    findings = []
    for path in lint_tree.files(root, {".h", ".cc"}):
        if path.split("/")[0] in lint_tree.PRODUCT_FOLDERS:  # what programs link; tests and benches have no such build
            findings += [Finding("include", path, 1, f"{name} needs #include <{header}>, here or in a header of ours")
                         for header, name in sorted(missing(tree, path).items())]
    return findings


GOOD = {
    "include/ashlar/x.h": "#include <vector>\n#include \"absl/status/statusor.h\"\n",
    "allocator/x.h": "#include <map>\n#include \"ashlar/x.h\"\n",
    "allocator/x.cc": "#include \"allocator/x.h\"\nstd::vector<int> a; std::map<int, int> b; absl::Status c;  // std::set\n",
    "tests/x.cc": "std::set<int> a;\n",
}
SAMPLES = [
    Sample("", GOOD),
    Sample("include", GOOD | {"allocator/y.cc": "std::vector<int> a;\n"}),
    Sample("include", GOOD | {"kernels/y.cc": "#include \"allocator/x.h\"\nstd::set<int> a;\n"}),
    Sample("include", GOOD | {"analyzer/y.cc": "#include \"allocator/x.h\"\nauto a = absl::StrCat(1);\n"}),
    Sample("include", GOOD | {"include/ashlar/y.h": "// #include <string>\nstd::string a();\n"}),
]

if __name__ == "__main__":
    lint_tree.main("includes", check, SAMPLES)
