#!/usr/bin/env python3
"""What `ashlar --generate` makes, against the program's own --help: every command and flag is in the man page and in each
shell's completions, and the shells that are here complete by them.

generated_test.py PROGRAM [arguments of unittest]
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def output(*command, text=None, code=0):
    ended = subprocess.run(command, input=text, capture_output=True, text=True)
    assert ended.returncode == code, f"{command}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
    return ended.stdout + ended.stderr


def commands_and_flags():
    """{"": {"--help", ...}, "run gpt_training": {...}}, as --help prints them."""
    found, left = {}, [""]
    while left:
        path = left.pop()
        shown = output(PROGRAM, *path.split(), "--help").split("\nExample:")[0]
        found[path] = set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", shown, re.MULTILINE))
        below = re.split(r"\n(?:Arguments|Flags):\n", shown)[0].split("\nUsage: ")[1]
        left += [f"{path} {name}".strip() for name in re.findall(r"^  ([\w-]+) ", below, re.MULTILINE)]
    return found


def flags_of_man(text, path):
    section = text.split(".SH COMMANDS")[0] if not path else text.split(f"\n.SS ashlar {path}\n")[1].split("\n.SS ")[0]
    return set(re.findall(r"\\fB(--[\w-]+)\\fR", section))


def flags_of_bash(text, path):
    block = text.split("  case $path in\n")[-1].split(f'\n    "{" " + path if path else ""}")' if path else '    "")')[1]
    return set(re.findall(r"--[\w-]+", re.search(r'compgen -W "([^"]*)"', block)[1]))


def flags_of_zsh(text, path):
    name = "_".join(["_ashlar", *path.replace("-", "_").split()])
    return set(re.findall(r"'\*?(--[\w-]+)", text.split(f"\n{name}() {{")[1].split("\n}\n")[0]))


def flags_of_fish(text, path):
    at = f'__ashlar_is_at "{" " + path if path else ""}"'
    return {f"--{name}" for line in text.splitlines() if at in line for name in re.findall(r" -l ([\w-]+)", line)}


class GeneratedTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.known = commands_and_flags()
        cls.text = {kind: output(PROGRAM, "--generate", kind) for kind in ("man", "bash", "zsh", "fish")}

    def script(self, kind):
        file = tempfile.NamedTemporaryFile("w", suffix=f".{kind}")
        self.addCleanup(file.close)
        file.write(self.text[kind])
        file.flush()
        return file.name

    def need(self, tool):
        if not shutil.which(tool):
            self.skipTest(f"no {tool}")

    def test_help_was_read(self):
        self.assertIn("--capacity", self.known["explain"])
        self.assertIn("--model", self.known["run gpt_training"])
        self.assertGreater(len(self.known), 12)

    def test_every_flag_is_in_each(self):
        plain = dict(self.text, man=self.text["man"].replace("\\-", "-"))
        for kind, flags_of in {"man": flags_of_man, "bash": flags_of_bash, "zsh": flags_of_zsh,
                               "fish": flags_of_fish}.items():
            for path, flags in self.known.items():
                with self.subTest(kind=kind, command=path):
                    self.assertEqual(flags_of(plain[kind], path), flags)

    def test_another_kind_is_a_usage_error(self):
        self.assertIn("none of man, bash, zsh, fish", output(PROGRAM, "--generate", "tcsh", code=2))

    def test_bash_completes(self):
        self.need("bash")
        for words, wanted in {"ashlar ex": "explain", "ashlar explain --cap": "--capacity", "ashlar run gpt": "gpt_training",
                              "ashlar explain --format m": "markdown", "ashlar explain --format = m": "markdown",
                              "ashlar run gpt_training --mo": "--model", "ashlar --ver": "--version",
                              "ashlar dry-run -- python --cap": ""}.items():
            line = f"source {self.script('bash')}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _ashlar; "
            with self.subTest(words=words):
                self.assertEqual(output("bash", "-c", line + 'echo "${COMPREPLY[*]}"').strip(), wanted)

    def test_fish_completes(self):
        self.need("fish")
        for words, wanted in {"ashlar ex": "explain", "ashlar explain --cap": "--capacity", "ashlar run gpt": "gpt_training",
                              "ashlar explain --format m": "markdown", "ashlar-gpu run gpt_training --mo": "--model"}.items():
            got = output("fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{words}'")
            with self.subTest(words=words):
                self.assertEqual([line.split("\t")[0] for line in got.splitlines()], [wanted])

    def test_zsh_reads_it(self):
        self.need("zsh")
        output("zsh", "-n", self.script("zsh"))

    def test_man_page_is_clean(self):
        self.need("mandoc")
        found = output("mandoc", "-T", "lint", "-W", "error", self.script("man"))
        self.assertEqual(found, "")
        self.assertIn("a snapshot or a trace", output("mandoc", "-T", "utf8", self.script("man")))


if __name__ == "__main__":
    unittest.main()
