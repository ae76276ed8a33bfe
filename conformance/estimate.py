"""Holds `ashlar estimate` to real PyTorch over the hollow device: the peaks of both, row by row.

    conformance/estimate.py build/release/bin/ashlar --python PATH [--all | --rows N --seed S] [--markdown FILE]

Each row of estimated_rows.py is run twice: programs/estimated_step.py under `ashlar dry-run` by an interpreter that has
torch and transformers (--python, or ASHLAR_REAL_PYTHON), and `ashlar estimate` with the same description and the
versions that the program told. Exit code: 0 all within the bounds, or nothing could be run (the last line says
"skipped" and why); 1 a bound is broken or a row failed.
"""

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from estimated_rows import ROWS

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_MEDIAN, MOST_WORST = 0.1, 2.0  # percent, of the peak allocated and of the peak reserved
PEAKS = ("peak_allocated", "peak_reserved")
CAPACITY = "80GiB"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("ashlar")
    parser.add_argument("--python", default=os.environ.get("ASHLAR_REAL_PYTHON", ""))
    parser.add_argument("--all", action="store_true", help="every row")
    parser.add_argument("--rows", type=int, default=4, help="how many, drawn at random (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--jobs", type=int, default=1, help="rows at a time; the result does not depend on it")
    parser.add_argument("--only", default="", help="rows of this model alone")
    parser.add_argument("--markdown", default="", help="write the table there too")
    return parser.parse_args()


def why_not(python):
    """Empty, or why no row can be run."""
    if not python:
        return "no interpreter: give --python or ASHLAR_REAL_PYTHON"
    try:
        found = subprocess.run([python, "-c", "import torch, transformers"], capture_output=True, text=True)
    except OSError as error:
        return f"{python}: {error.strerror}"
    return "" if found.returncode == 0 else f"{python}: {found.stderr.strip().splitlines()[-1]}"


def has_bitsandbytes(python):
    return subprocess.run([python, "-c", "import bitsandbytes"], capture_output=True).returncode == 0


def chosen(asked):
    rows = [row for row in ROWS if row[0] == asked.only] if asked.only else list(ROWS)
    if asked.all or asked.only or asked.rows >= len(rows):
        return rows
    picked = random.Random(asked.seed).sample(range(len(rows)), asked.rows)
    return [rows[i] for i in sorted(picked)]


def flags_of(row):
    _, batch, tokens, precision, optimizer, checkpoints, more = row
    flags = ["--batch", str(batch), "--seq", str(tokens), "--precision", precision, "--optimizer", optimizer]
    return flags + (["--checkpointing"] if checkpoints else []) + list(more)


def last_line_of_json(text):
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


def why_it_failed(text):
    """The program's own error, or what was said last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no word"]
    told = [line for line in lines if line.startswith("ashlar:") or "Error" in line.split(":")[0]]
    return told[0] if told else lines[-1]


def run_real(asked, row, config):
    """What the program told."""
    with open(config) as file:
        architecture = json.load(file)["architectures"][0]
    script = os.path.join(HERE, "programs", "estimated_step.py")
    program = [asked.python, script, config, "--architecture", architecture]
    command = [asked.ashlar, "dry-run", "--capacity", CAPACITY, "--segment-addresses", "ascending", "--reproducible", "--skip-init", "--"]
    done = subprocess.run(command + program + flags_of(row), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(why_it_failed(done.stderr))
    return last_line_of_json(done.stdout)


def run_estimate(asked, row, config, told):
    """The peaks with ascending addresses."""
    versions = ["--torch", told["torch"].split("+")[0], "--transformers", told["transformers"]]
    command = [asked.ashlar, "estimate", config, "--json", "--gpu", "A100"] + versions + flags_of(row)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    run = json.loads(done.stdout)["ascending"]
    return {peak: run[peak + "_bytes"] for peak in PEAKS}


def percent(estimated, real):
    return 100.0 * (estimated - real) / real


def measure(asked, row):
    config = os.path.join(HERE, "models", row[0] + ".json")
    told = run_real(asked, row, config)
    estimated = run_estimate(asked, row, config, told)
    return {
        "row": row,
        "told": told,
        "estimated": estimated,
        "errors": [percent(estimated[peak], told[peak]) for peak in PEAKS],
    }


def line_of(result):
    model, batch, tokens, precision, optimizer, checkpoints, more = result["row"]
    cells = [model, f"{batch} x {tokens}", precision, optimizer, "yes" if checkpoints else "", " ".join(more)]
    for peak, error in zip(PEAKS, result["errors"]):
        cells += [f"{result['told'][peak]:,}", f"{result['estimated'][peak]:,}", f"{error:+.3f}"]
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "| model | batch | precision | optimizer | checkpointed | more | allocated, real | estimate | % "
    "| reserved, real | estimate | % |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def summary(results):
    """Lines, and whether all bounds hold."""
    lines, holds = [], True
    for i, peak in enumerate(PEAKS):
        errors = [abs(result["errors"][i]) for result in results]
        median, worst = statistics.median(errors), max(errors)
        exact = sum(1 for error in errors if error == 0)
        holds = holds and median <= MOST_MEDIAN and worst <= MOST_WORST
        lines.append(
            f"{peak.replace('_', ' ')}: {len(errors)} rows, {exact} equal to the byte, median {median:.3f} %, "
            f"worst {worst:.3f} % (bounds {MOST_MEDIAN} and {MOST_WORST})"
        )
    return lines, holds


def write_markdown(path, results, lines):
    told = results[0]["told"]
    head = [
        "# The estimate and the real program",
        "",
        "Written by `conformance/estimate.py --all --markdown`; [how exact the estimate is](../guide/estimate_accuracy.md) says what is compared. "
        f"{datetime.date.today().isoformat()}: PyTorch {told['torch']}, transformers {told['transformers']}, over the "
        f"hollow device ({told['device']}, {CAPACITY}); bytes.",
        "",
    ]
    with open(path, "w") as file:
        file.write("\n".join(head + [HEADER] + [line_of(r) for r in results] + [""] + [f"- {line}" for line in lines]))
        file.write("\n")


def main():
    asked = arguments()
    reason = why_not(asked.python)
    if reason:
        print(f"estimate: {len(ROWS)} rows skipped: {reason}")
        return 0
    rows = chosen(asked)
    if not has_bitsandbytes(asked.python):
        left_out = [row for row in rows if row[4] == "adamw-8bit"]
        rows = [row for row in rows if row[4] != "adamw-8bit"]
        if left_out:
            print(f"{len(left_out)} rows of adamw-8bit skipped: no bitsandbytes")
    print(f"{len(rows)} of {len(ROWS)} rows" + ("" if asked.all else f", seed {asked.seed}"))
    print(HEADER)
    results, failures = [], []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for row, running in [(row, pool.submit(measure, asked, row)) for row in rows]:
            try:
                results.append(running.result())
                print(line_of(results[-1]), flush=True)
            except RuntimeError as error:
                failures.append(f"{row}: {error}")
                print(f"FAILED {failures[-1]}", flush=True)
    if not results:
        return 1
    lines, holds = summary(results)
    print("\n".join(lines))
    if asked.markdown:
        write_markdown(asked.markdown, results, lines)
    return 0 if holds and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
