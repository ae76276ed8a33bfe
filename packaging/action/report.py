#!/usr/bin/env python3
"""The step of action.yml: runs `ashlar check` or `ashlar dry-run`, and reports peak and verdict to GitHub.

In: ASHLAR_COMMAND, ASHLAR_ARGUMENTS (words of the shell), ASHLAR_TITLE, ASHLAR_COMMENT, and what GitHub sets (GITHUB_TOKEN,
GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY). Out: the exit code of ashlar,
outputs `peak-bytes` and `verdict`, a summary, and one comment of each title on the pull request: a later run changes it.
A comment that cannot be written is a warning.
"""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import urllib.request

GIB = 1 << 30


@dataclasses.dataclass
class Report:
    verdict: str
    peak_bytes: object  # None where it is not known
    lines: list


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


def run(command, arguments):
    """Ashlar's exit code, and its answer; none where it was refused before it had one."""
    ended = subprocess.run(["ashlar", command, "--json", *shlex.split(arguments)], stdout=subprocess.PIPE, text=True)
    try:
        return ended.returncode, json.loads(ended.stdout)
    except json.JSONDecodeError:
        return ended.returncode, None


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
    text = "\n".join([mark, f"### {title}: {report.verdict}, peak {gib(report.peak_bytes)}", "", "| | |", "|---|---|",
                      *report.lines])
    append("GITHUB_STEP_SUMMARY", text)
    append("GITHUB_OUTPUT", f"verdict={report.verdict}\npeak-bytes={'' if report.peak_bytes is None else report.peak_bytes}")
    if os.environ.get("ASHLAR_COMMENT", "true") != "true" or not os.environ.get("GITHUB_EVENT_PATH"):
        return
    try:
        if number := pull_request():
            comment(number, mark, text)
    except OSError as error:  # urllib's errors are these; a fork's token may not write
        print(f"::warning::the comment could not be written: {error}")


def main():
    command = os.environ["ASHLAR_COMMAND"]
    if command not in REPORTS:
        print(f"::error::command: '{command}' is not one of {', '.join(REPORTS)}")
        return 2
    code, answer = run(command, os.environ["ASHLAR_ARGUMENTS"])
    if answer is None:
        print(f"::error::ashlar {command} gave no answer: its message is above")
        return code or 2
    publish(os.environ.get("ASHLAR_TITLE", "GPU memory"), REPORTS[command](answer))
    return code


if __name__ == "__main__":
    sys.exit(main())
