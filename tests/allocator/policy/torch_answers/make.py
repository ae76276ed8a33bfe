#!/usr/bin/env python3
"""Makes answers.tsv: what each release of PyTorch says to each text of conf_texts.py.

    tests/allocator/policy/torch_answers/make.py                                     # installs each release, one at a time
    tests/allocator/policy/torch_answers/make.py --python 2.14.1=venv/bin/python     # this one is there
    tests/allocator/policy/torch_answers/make.py --only 2.14.1                       # the other columns stay as they are

A wheel with what it needs is 5.5 GB; it is installed into a folder of its own, which goes afterwards.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import conf_texts

RELEASES = ("2.6.0", "2.12.0", "2.14.1", "2.15.0")
HERE = pathlib.Path(__file__).parent
TABLE = HERE / "answers.tsv"
LEAD = """\
# What PyTorch says to texts of PYTORCH_CUDA_ALLOC_CONF; made by make.py. A row: the text in JSON, then a column for each
# release. no: refused; ?: not asked; else what differs from no settings, as a snapshot shows it.
"""


def cell(answer, default):
    """The values that differ from those of no settings: "max_split_size=67108864"."""
    if answer is None:
        return "no"
    values = {key: ",".join(map(str, value.values())) if isinstance(value, dict) else value
              for key, value in answer.items() if value != default[key]}
    return " ".join(f"{key}={value}" for key, value in sorted(values.items())) or "yes"


def answers_of(python, texts):
    """{text: cell}"""
    asked = subprocess.run([python, "-B", HERE / "ask.py"], input=json.dumps(["", *texts]), stdout=subprocess.PIPE,
                           check=True, text=True)
    default, *answers = json.loads(asked.stdout)
    return {text: cell(answer, default) for text, answer in zip(texts, answers)}


@contextlib.contextmanager
def installed(release):
    with tempfile.TemporaryDirectory(prefix=f"torch-{release}-") as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = f"{folder}/bin/python"
        # pip reads no settings of the machine's: some cap versions, or name folders with builds for the CPU.
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-cache-dir", f"torch=={release}"], check=True,
                       env={**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_CONSTRAINT": ""})
        yield python


def written():
    """{release: {text: cell}} of the table as it is."""
    if not TABLE.exists():
        return {}
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    releases = rows[0][1:]
    return {release: {json.loads(row[0]): row[at] for row in rows[1:]} for at, release in enumerate(releases, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", metavar="RELEASE=PATH", action="append", default=[])
    parser.add_argument("--only", metavar="RELEASE", action="append", choices=RELEASES)
    options = parser.parse_args()
    pythons = dict(given.split("=", 1) for given in options.python)
    texts = conf_texts.texts()
    table = written()
    for release in options.only or RELEASES:
        place = contextlib.nullcontext(pythons[release]) if release in pythons else installed(release)
        with place as python:
            table[release] = answers_of(python, texts)
    rows = ["\t".join(["text", *RELEASES])]
    rows += ["\t".join([json.dumps(text), *(table.get(release, {}).get(text, "?") for release in RELEASES)])
             for text in texts]
    TABLE.write_text(LEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
