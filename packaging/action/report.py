#!/usr/bin/env python3
"""The step of action.yml: runs `ashlar check` or `ashlar dry-run`, and reports peak, growth and verdict to GitHub.

In: ASHLAR_COMMAND, ASHLAR_ARGUMENTS (words of the shell), ASHLAR_BASE, ASHLAR_MAX_GROWTH, ASHLAR_TITLE, ASHLAR_COMMENT, and what
GitHub sets (GITHUB_TOKEN, GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, RUNNER_TEMP).
Out: the exit code of ashlar, or 1 where the peak grew by more than the limit; outputs `peak-bytes`, `growth-bytes`, `verdict` and
`snapshot`; a summary, and one comment of each title on the pull request: a later run changes it. What cannot be compared, and a
comment that cannot be written, is a warning.
"""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.request

GIB, MIB = 1 << 30, 1 << 20
MOST_CAUSES = 3  # of growth


@dataclasses.dataclass
class Report:
    verdict: str
    peak_bytes: object  # None where it is not known
    lines: list
    growth_bytes: object = None  # None where there is nothing to compare with
    snapshot: str = ""  # the history of the run; empty: none was kept


def gib(count):
    return "unknown" if count is None else f"{count / GIB:.2f} GiB"


def cell(text):
    """Text of the program's, in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def smallest_card(rows):
    """The first that fits, least memory first, and under which settings: of those that the program was run as."""
    for row in rows:
        if row["has_kernels"] is False:  # it would fit, and not run
            continue
        outcomes = [row[key] for key in ("default", "expandable", "best_found") if row[key] and row[key]["fits"]]
        if outcomes:
            conf = outcomes[0]["conf"]
            return row["card"] + (f" with `{conf}`" if conf and outcomes[0] is not row["default"] else "")
    return "none that it was run as"


def report_dry_run(answer):
    ended = answer["ended_early"]
    unknown = "no device used" if ended is None else "ended early"
    verdict = {True: "fits", False: "out of memory", None: unknown}[answer["fits"]]
    machine = answer["machine"]
    lines = [f"| program | `{shlex.join(answer['program'])}` |", f"| verdict | **{verdict}** |",
             f"| peak{' until then' if ended else ''} | {gib(answer['peak_bytes'])} |"]
    if ended is not None:
        lines.append(f"| ended before its end with | {cell(ended['what'])} |")
    if machine["has_limit"]:
        lines.append(f"| device | {machine['card'] or 'given'}, {gib(machine['total']['bytes'])} |")
    if answer["cards"]:
        enough = "smallest card that is enough" + (" for what was seen" if ended else "")
        lines.append(f"| {enough} | {smallest_card(answer['cards']['rows'])} |")
    if answer["fits"] is not False and answer["exit_code"] != 0:
        lines.append(f"| exit code | {answer['exit_code']} |")
    return Report(verdict, answer["peak_bytes"], lines)


def value(limit, key):
    number = limit[key]
    if number is None or limit["unit"] == "count":
        return "unknown" if number is None else f"{number:,.0f}"
    return gib(number) if limit["unit"] == "bytes" else f"{number:.2%}"


def report_check(answer):
    verdict = "passed" if answer["passed"] else "failed"
    lines = [f"| input | `{answer['input']}` |", f"| verdict | **{verdict}** |"]
    for limit in answer["limits"]:
        of = "" if limit["device"] is None else f" of device {limit['device']}"
        why = f", {limit['reason']}" if limit["reason"] else ""
        lines.append(f"| {limit['name']}{of} | {value(limit, 'measured')} of {value(limit, 'limit')}: "
                     f"{limit['verdict'].replace('_', ' ')}{why} |")
    peaks = [limit["measured"] for limit in answer["limits"] if limit["name"] == "max-reserved" and limit["measured"]]
    return Report(verdict, max(peaks, default=None), lines)


REPORTS = {"dry-run": report_dry_run, "check": report_check}


def warn(text):
    print(f"::warning::{text}")


def run(command, words, folder=None):
    """Ashlar's exit code, and its answer; none where it was refused before it had one."""
    ended = subprocess.run(["ashlar", command, "--json", *words], stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        return ended.returncode, json.loads(ended.stdout)
    except json.JSONDecodeError:
        return ended.returncode, None


def keeping(words):
    """Words of a dry run that keep its history, and where it lies then."""
    own = words[:words.index("--")] if "--" in words else words
    for flag in ("-o", "--output"):
        if flag in own[:-1]:
            return words, os.path.abspath(own[own.index(flag) + 1])
    file = os.path.join(tempfile.mkdtemp(prefix="ashlar_", dir=os.environ.get("RUNNER_TEMP")), "run.pickle")
    return ["-o", file, *words], file


def snapshot_of_base(base, command, words):
    """The snapshot to compare with: the one that is named, or that of the same dry run in a folder with the base."""
    if os.path.isfile(base):
        return base
    if command != "dry-run" or not os.path.isdir(base):
        return None
    words, file = keeping(words)
    run(command, words, folder=base)
    return file if os.path.isfile(file) else None


def growth_rows(difference):
    """(bytes, what): what holds more than before, by its name in the program where both sides have names, else by its line."""
    rows = []
    for row in difference["by_name"] or ():
        if row["kind"] != "not_found":
            place = f" in {os.path.basename(row['file'])}" + (f":{row['line']}" if row["line"] else "") if row["file"] else ""
            rows.append((row["difference"]["bytes"], f"`{row['name']}`{place}"))
    if not any(count > 0 for count, _ in rows):
        rows = [(row["difference"]["in_use_bytes"], f"`{row['label']}`") for row in difference["by_stack"] or ()]
    return sorted((row for row in rows if row[0] > 0), reverse=True)[:MOST_CAUSES]


def add_growth(report, base, command, words):
    """How the peak stands to the base's, and what grew."""
    before = snapshot_of_base(base, command, words)
    if before is None or not os.path.isfile(report.snapshot):
        warn(f"base: {base}: no snapshot of {'it' if before is None else 'this run'} to compare")
        return None
    _, difference = run("diff", [before, report.snapshot])
    if difference is None:
        warn(f"base: {base}: could not be compared: the message is above")
        return None
    was = difference["a"]["parts"]["allocated_bytes"]
    report.growth_bytes = difference["difference"]["allocated_bytes"]
    share = f" ({report.growth_bytes / was:+.1%})" if was else ""
    report.lines += [f"| peak allocated on the base | {gib(was)} |",
                     f"| growth | {report.growth_bytes / MIB:+,.1f} MiB{share} |"]
    report.lines += [f"| grew by {count / MIB:,.1f} MiB | {cell(what)} |" for count, what in growth_rows(difference)]
    return before


def is_too_much(report, before, limit):
    """Whether `ashlar check` finds more growth of reserved memory than the limit."""
    code, answer = run("check", [report.snapshot, "--baseline", before, "--max-growth", limit])
    if answer is None:
        warn(f"max-growth: {limit}: was not held: the message is above")
        return False
    report.lines += report_check(answer).lines[2:]
    return code == 1


def append(variable, text):
    if os.environ.get(variable):
        with open(os.environ[variable], "a", encoding="utf-8") as file:
            file.write(text + "\n")


def call(method, path, content=None):
    request = urllib.request.Request(
        f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}{path}",
        data=None if content is None else json.dumps(content).encode(), method=method,
        headers={"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def pull_request():
    with open(os.environ["GITHUB_EVENT_PATH"], encoding="utf-8") as file:
        return json.load(file).get("pull_request", {}).get("number")


def comment(number, mark, text):
    """Changes the comment with the mark, else adds one."""
    page = 1
    while comments := call("GET", f"/issues/{number}/comments?per_page=100&page={page}"):
        for old in comments:
            if old["body"].startswith(mark):
                return call("PATCH", f"/issues/comments/{old['id']}", {"body": text})
        page += 1
    return call("POST", f"/issues/{number}/comments", {"body": text})


def publish(title, report):
    mark = f"<!-- ashlar: {title} -->"
    grown = "" if report.growth_bytes is None else f", {report.growth_bytes / MIB:+,.1f} MiB to the base"
    text = "\n".join([mark, f"### {title}: {report.verdict}, peak {gib(report.peak_bytes)}{grown}", "", "| | |", "|---|---|",
                      *report.lines])
    append("GITHUB_STEP_SUMMARY", text)
    for name, said in (("verdict", report.verdict), ("peak-bytes", report.peak_bytes), ("growth-bytes", report.growth_bytes),
                       ("snapshot", report.snapshot)):
        append("GITHUB_OUTPUT", f"{name}={'' if said is None else said}")
    if os.environ.get("ASHLAR_COMMENT", "true") != "true" or not os.environ.get("GITHUB_EVENT_PATH"):
        return
    try:
        if number := pull_request():
            comment(number, mark, text)
    except OSError as error:  # urllib's errors are these; a fork's token may not write
        warn(f"the comment could not be written: {error}")


def main():
    command = os.environ["ASHLAR_COMMAND"]
    if command not in REPORTS:
        print(f"::error::command: '{command}' is not one of {', '.join(REPORTS)}")
        return 2
    words = shlex.split(os.environ["ASHLAR_ARGUMENTS"])
    kept_words, snapshot = keeping(words) if command == "dry-run" else (words, "")
    code, answer = run(command, kept_words)
    if answer is None:
        print(f"::error::ashlar {command} gave no answer: its message is above")
        return code or 2
    if kept_words is not words and code == 3 and answer["exit_code"] == 0:
        code = 0  # there was no history to keep, which nobody but this step asked for
    report = REPORTS[command](answer)
    snapshot = snapshot or answer["input"]
    report.snapshot = snapshot if os.path.isfile(snapshot) else ""
    base, limit = os.environ.get("ASHLAR_BASE", ""), os.environ.get("ASHLAR_MAX_GROWTH", "")
    before = add_growth(report, base, command, words) if base else None
    if before and limit and is_too_much(report, before, limit):
        report.verdict = "grew too much"
        code = code or 1
    publish(os.environ.get("ASHLAR_TITLE", "GPU memory"), report)
    return code


if __name__ == "__main__":
    sys.exit(main())
