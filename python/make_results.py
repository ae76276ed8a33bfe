"""Writes types of answers from docs/schemas: each object of a schema is a frozen dataclass of ashlar_gpu/results, and a
type of the page (page/src/document/answers).

    python3 python/make_results.py            # writes them
    python3 python/make_results.py --check    # exit code 1 where a file differs from what it would write
"""

import json
import keyword
import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
SCHEMAS = HERE.parent / "docs" / "schemas"
TARGET = HERE / "ashlar_gpu" / "results"
PAGE = HERE.parent / "page" / "src" / "document" / "answers"
WIDTH = 120

# schema -> (module, the answer's definition, its base)
ANSWERS = {
    "explain": ("explanation", "explanation", "ExplanationAnswer"),
    "dry-run": ("dry_run", "dry_run", "DryRunAnswer"),
    "estimate": ("estimate", "estimate", "Answer"),
    "sweep": ("sweep", "sweep", "Answer"),
}
# Of the page: schema -> the answer's definition.
SHOWN = {"explain": "explanation", "diff": "diff", "estimate": "estimate", "dry-run": "dry_run", "fleet": "fleet", "fit": "fit"}
# What the package adds to an answer.
ADDED = {"explanation": ['    others: Tuple["Explanation", ...]  # what else the input held: other messages of a log, other files']}
PLAIN = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
SCRIPT = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}


def class_name(definition):
    return "".join(part.capitalize() for part in definition.replace("_or_null", "").split("_"))


class Module:
    """One schema's classes, in the order in which they are needed."""

    def __init__(self, schema, answer, base):
        self.definitions = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())["$defs"]
        self.answer, self.base = answer, base
        self.classes = {}  # definition -> text, those that it needs first
        self.imports, self.typing = set(), set()
        self.add(answer)

    def use(self, name):
        self.typing.add(name)
        return name

    def optional(self, kind, is_optional):
        return f"{self.use('Optional')}[{kind}]" if is_optional else kind

    def kind_of(self, node):
        """The annotation of a schema's node."""
        if "$ref" in node:
            return self.kind_of_reference(node["$ref"])
        if "anyOf" in node:
            (kind,) = [self.kind_of(one) for one in node["anyOf"] if one.get("type") != "null"]
            return self.optional(kind, len(node["anyOf"]) == 2)
        kinds = node.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if "enum" in node:
            words = ", ".join(json.dumps(word) for word in node["enum"] if word is not None)
            return self.optional(f"{self.use('Literal')}[{words}]", None in node["enum"])
        is_optional = "null" in kinds
        (kind,) = [one for one in kinds if one != "null"]
        if kind != "array":
            return self.optional(PLAIN[kind], is_optional)
        item = self.kind_of(node["items"])
        count = node.get("maxItems")
        items = ", ".join([item] * count) if count is not None else f"{item}, ..."
        return self.optional(f"{self.use('Tuple')}[{items}]", is_optional)

    def kind_of_reference(self, reference):
        file, _, name = reference.partition("#/$defs/")
        if file:
            module = ANSWERS[file.replace(".schema.json", "")][0]
            self.imports.add((f"ashlar_gpu.results.{module}", class_name(name)))
            return class_name(name)
        node = self.definitions[name]
        if "properties" not in node:
            return self.kind_of(node)
        self.add(name)
        return self.optional(class_name(name), "null" in node["type"])

    def add(self, name):
        if name in self.classes:
            return
        node = self.definitions[name]
        lines = [line for key, value in node["properties"].items() for line in self.field(key, value)]
        base = f"({self.base})" if name == self.answer else ""
        shown = ", repr=False" if name == self.answer else ""
        head = [f"@dataclasses.dataclass(frozen=True{shown})", f"class {class_name(name)}{base}:"]
        self.classes[name] = "\n".join(head + lines + ADDED.get(name, []))

    def field(self, key, node):
        assert not keyword.iskeyword(key), key
        line = f"    {key}: {self.kind_of(node)}"
        said = node.get("description", "")
        if len(line) + len(said) + 4 <= WIDTH:
            return [f"{line}  # {said}" if said else line]
        return [f"    # {part}" for part in textwrap.wrap(said, WIDTH - 6)] + [line]


class Script:
    """One schema's types in TypeScript, the answer's first. Aliases, which may be read by a key that is a variable."""

    def __init__(self, schema, answer):
        self.definitions = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())["$defs"]
        self.types, self.imports = {}, set()
        self.add(answer)

    def kind_of(self, node):
        if "$ref" in node:
            return self.kind_of_reference(node["$ref"])
        if "anyOf" in node:
            return " | ".join(sorted((self.kind_of(one) for one in node["anyOf"]), key=lambda kind: kind == "null"))
        if "enum" in node:
            return " | ".join("null" if word is None else f"'{word}'" for word in node["enum"])
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return " | ".join("null" if kind == "null" else self.plain(kind, node) for kind in kinds)

    def plain(self, kind, node):
        if kind == "object":
            return "{ " + "; ".join(f"{key}: {self.kind_of(value)}" for key, value in node["properties"].items()) + " }"
        if kind != "array":
            return SCRIPT[kind]
        item = self.kind_of(node["items"])
        if "maxItems" in node:
            return "[" + ", ".join([item] * node["maxItems"]) + "]"
        return f"({item})[]" if "|" in item else f"{item}[]"

    def kind_of_reference(self, reference):
        file, _, name = reference.partition("#/$defs/")
        if file:
            self.imports.add((file.replace(".schema.json", ""), class_name(name)))
            return class_name(name)
        node = self.definitions[name]
        if "properties" not in node:
            return self.kind_of(node)
        self.add(name)
        return class_name(name) + (" | null" if "null" in node["type"] else "")

    def add(self, name):
        if name in self.types:
            return
        self.types[name] = ""
        lines = [f"  {key}: {self.kind_of(value)};" for key, value in self.definitions[name]["properties"].items()]
        self.types[name] = "\n".join([f"export type {class_name(name)} = {{", *lines, "};"])


def script_of(schema):
    script = Script(schema, SHOWN[schema])
    lines = [f"// Made from docs/schemas/{schema}.schema.json by python/make_results.py."]
    lines += [f"import type {{ {what} }} from './{where}';" for where, what in sorted(script.imports)]
    return "\n".join(lines) + "\n\n" + "\n\n".join(script.types.values()) + "\n"


def text_of(schema):
    name, answer, base = ANSWERS[schema]
    module = Module(schema, answer, base)
    lead = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())["description"]
    lines = [f'"""What `ashlar {schema}` answers. Sizes are bytes; None: not known.', "", *textwrap.wrap(lead, WIDTH), "",
             f'Made from docs/schemas/{schema}.schema.json by python/make_results.py.', '"""', "", "import dataclasses"]
    if module.typing:
        lines.append(f"from typing import {', '.join(sorted(module.typing))}")
    lines += ["", f"from ashlar_gpu._answer import {base}"]
    lines += [f"from {where} import {what}" for where, what in sorted(module.imports)]
    return "\n".join(lines) + "\n\n\n" + "\n\n\n".join(module.classes.values()) + "\n"


def main(arguments):
    differs = []
    files = [(TARGET / f"{name}.py", text_of(schema)) for schema, (name, _, _) in ANSWERS.items()]
    files += [(PAGE / f"{schema}.ts", script_of(schema)) for schema in SHOWN]
    for path, text in files:
        if arguments == ["--check"]:
            if not path.is_file() or path.read_text() != text:
                differs.append(path.relative_to(HERE.parent))
        else:
            path.write_text(text)
    for name in differs:
        print(f"{name} is not what its schema says: run python3 python/make_results.py")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
