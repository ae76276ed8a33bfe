#!/usr/bin/env python3
"""The step of action.yml with the real program, and a GitHub of ours: an HTTP server that keeps comments.

action_test.py PROGRAM [arguments of unittest]
"""

import http.server
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import yaml
except ImportError:
    yaml = None

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
SNAPSHOT = ROOT / "docs/examples/training_oom.pickle"
WORKFLOW = ROOT / "docs/examples/action/memory.yml"


class GitHub(http.server.BaseHTTPRequestHandler):
    comments = []  # {"id", "body"}, of pull request 7 of owner/name
    refuses = False

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        content = json.loads(self.rfile.read(length)) if length else None
        path, _, query = self.path.partition("?")
        if self.refuses or self.headers["Authorization"] != "Bearer secret":
            return self.send(403, {"message": "Resource not accessible by integration"})
        if self.command == "GET" and path == "/repos/owner/name/issues/7/comments":
            page = int(re.search(r"&page=(\d+)", query)[1])
            return self.send(200, self.comments[page - 1:page])  # pages of one
        if self.command == "POST" and path == "/repos/owner/name/issues/7/comments":
            self.comments.append({"id": 100 + len(self.comments), "body": content["body"]})
            return self.send(201, self.comments[-1])
        if self.command == "PATCH" and (match := re.fullmatch(r"/repos/owner/name/issues/comments/(\d+)", path)):
            (comment,) = [one for one in self.comments if one["id"] == int(match[1])]
            comment["body"] = content["body"]
            return self.send(200, comment)
        return self.send(404, {"message": "Not Found"})

    do_GET = do_POST = do_PATCH = answer

    def send(self, status, content):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_):
        pass


class ActionTest(unittest.TestCase):
    def setUp(self):
        GitHub.comments, GitHub.refuses = [{"id": 1, "body": "Looks good to me."}], False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_step(self, command, arguments, event=None, command_line=f'"{sys.executable}" -B "{ROOT}/packaging/action/report.py"',
                 **more):
        """The exit code, what it printed, its outputs, and its summary."""
        for name in ("output", "summary"):
            (self.folder / name).write_text("")
        (self.folder / "event").write_text(json.dumps({"pull_request": {"number": 7}} if event is None else event))
        environment = os.environ | {
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "ASHLAR_COMMAND": command, "ASHLAR_ARGUMENTS": arguments,
            "ASHLAR_TITLE": "Memory", "RUNNER_TEMP": str(self.folder), "GITHUB_TOKEN": "secret", "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_API_URL": f"http://127.0.0.1:{self.server.server_port}", "GITHUB_EVENT_PATH": str(self.folder / "event"),
            "GITHUB_OUTPUT": str(self.folder / "output"), "GITHUB_STEP_SUMMARY": str(self.folder / "summary")} | more
        ended = subprocess.run(["bash", "-e", "-c", command_line], env=environment, cwd=self.folder, capture_output=True, text=True)
        outputs = dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())
        return ended.returncode, ended.stdout, outputs, (self.folder / "summary").read_text()

    def program_of(self, folder, blocks):
        """A program that allocates so many blocks of 100 MiB, in a function that is called `grow`."""
        folder.mkdir(exist_ok=True)
        text = (HERE / "device_calls.py").read_text()
        self.assertEqual(text.count("range(3)"), 1)
        (folder / "train.py").write_text(text.replace("range(3)", f"range({blocks})"))

    def test_a_dry_run_of_the_base_tells_the_growth(self):
        self.program_of(self.folder / "base", 3)
        self.program_of(self.folder, 5)
        arguments = f"--device T4 --context 1MiB -- {sys.executable} train.py"
        code, _, outputs, summary = self.run_step("dry-run", arguments, ASHLAR_BASE="base", ASHLAR_MAX_GROWTH="10%")
        self.assertEqual((code, outputs["verdict"]), (1, "grew too much"))
        self.assertEqual(int(outputs["growth-bytes"]), 200 << 20)
        self.assertIn("### Memory: grew too much, peak 0.49 GiB, +200.0 MiB to the base", summary)
        self.assertIn("| growth | +200.0 MiB (+66.7%) |", summary)
        self.assertRegex(summary, r"\| grew by 200\.0 MiB \| `.*` \|")
        self.assertRegex(summary, r"\| max-growth \| 0\.49 GiB of 0\.32 GiB: broken, over by .* \|")
        code, _, outputs, _ = self.run_step("dry-run", arguments, ASHLAR_BASE=outputs["snapshot"], ASHLAR_MAX_GROWTH="0%")
        self.assertEqual((code, outputs["verdict"], outputs["growth-bytes"]), (0, "fits", "0"))

    def test_growth_has_the_names_of_the_program(self):
        names = {"kind": "local", "name": "losses[]", "file": "/x/train.py", "line": 12}
        rows = [names | {"difference": {"bytes": 3 << 20}}, names | {"name": "x", "difference": {"bytes": -5}},
                names | {"kind": "not_found", "name": "", "difference": {"bytes": 9 << 20}}]
        sys.path.insert(0, str(ROOT / "packaging/action"))
        import report

        self.assertEqual(report.growth_rows({"by_name": rows, "by_stack": []}), [(3 << 20, "`losses[]` in train.py:12")])
        stacks = [{"label": "train.py:3 f", "difference": {"in_use_bytes": 7}}]
        self.assertEqual(report.growth_rows({"by_name": None, "by_stack": stacks}), [(7, "`train.py:3 f`")])

    def test_what_cannot_be_compared_is_a_warning(self):
        code, printed, outputs, _ = self.run_step("check", f"{SNAPSHOT} --max-ooms 1", ASHLAR_BASE="/nowhere")
        self.assertEqual((code, outputs["verdict"], outputs["growth-bytes"]), (0, "passed", ""))
        self.assertIn("::warning::base: /nowhere: no snapshot of it to compare", printed)

    @unittest.skipIf(yaml is None, "PyYAML is not here to read the workflow")
    def test_the_workflow_of_the_documents_runs(self):
        """Its steps one by one, the action's from action.yml; checkouts are the programs that lie in their folders."""
        self.assertIn(WORKFLOW.read_text(), (ROOT / "docs/library/packages.md").read_text())
        self.program_of(self.folder / "base", 3)
        self.program_of(self.folder, 4)
        (self.folder / "requirements.txt").write_text("")
        (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
        ran = [self.run_workflow_step(step) for step in job["steps"]]
        self.assertEqual([one for one in ran if one is not None], [0, 1])
        (comment,) = [one["body"] for one in GitHub.comments[1:]]
        self.assertIn("### GPU memory: grew too much, peak", comment)
        self.assertIn("| growth | +100.0 MiB (+33.3%) |", comment)

    def run_workflow_step(self, step):
        """The exit code; None for an action of GitHub's own."""
        if "run" in step:
            environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1"}
            return subprocess.run(["bash", "-e", "-c", step["run"]], cwd=self.folder, env=environment, check=False).returncode
        if step["uses"].startswith("actions/"):
            return None
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        self.assertLessEqual(set(step["with"]), set(action["inputs"]))
        values = {f"inputs.{key}": one.get("default", "") for key, one in action["inputs"].items()}
        values |= {f"inputs.{key}": str(one) for key, one in step["with"].items()}
        report = action["runs"]["steps"][-1]
        given = {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: values[match[1]], value) for key, value in report["env"].items()}
        code, *_ = self.run_step(given.pop("ASHLAR_COMMAND"), given.pop("ASHLAR_ARGUMENTS"), command_line=report["run"],
                                 **given | {"GITHUB_TOKEN": "secret", "GITHUB_ACTION_PATH": str(ROOT)})
        return code

    def test_check_comments_and_keeps_the_exit_code(self):
        code, _, outputs, summary = self.run_step("check", f"{SNAPSHOT} --max-reserved 11GiB --max-ooms 0")
        self.assertEqual(code, 1)
        self.assertEqual(outputs["verdict"], "failed")
        self.assertGreater(int(outputs["peak-bytes"]), 11 << 30)
        self.assertIn("### Memory: failed, peak 11.22 GiB", summary)
        self.assertIn("| max-ooms | 1 of 0: broken, the last at event 6,768 |", summary)
        self.assertEqual([one["body"] for one in GitHub.comments], ["Looks good to me.", summary.strip()])

    def test_a_later_run_changes_its_comment(self):
        self.run_step("check", f"{SNAPSHOT} --max-ooms 0")
        code, _, outputs, _ = self.run_step("check", f"{SNAPSHOT} --max-ooms 1")
        self.assertEqual((code, outputs["verdict"], outputs["peak-bytes"]), (0, "passed", ""))
        self.run_step("check", f"{SNAPSHOT} --max-ooms 1", ASHLAR_TITLE="Another")
        heads = [one["body"].splitlines()[:2][-1] for one in GitHub.comments]
        self.assertEqual(heads, ["Looks good to me.", "### Memory: passed, peak unknown", "### Another: passed, peak unknown"])

    def test_dry_run(self):
        program = f"{sys.executable} '{HERE / 'device_calls.py'}'"
        code, _, outputs, summary = self.run_step("dry-run", f"--device T4 --context 1MiB -- {program}")
        self.assertEqual((code, outputs["verdict"]), (0, "fits"))
        self.assertEqual(int(outputs["peak-bytes"]), 301 << 20)
        self.assertIn("| device | T4, ", summary)
        code, _, outputs, summary = self.run_step("dry-run", f"--capacity 250MiB --context 1MiB -- {program}")
        self.assertEqual(code, 1)  # the program's own, which found no memory
        self.assertEqual(outputs["verdict"], "out of memory")
        _, _, _, summary = self.run_step("dry-run", f"-- {program}")
        self.assertRegex(summary, r"smallest card that is enough \| \w+")

    def test_a_program_that_did_not_end_well_does_not_fit(self):
        run = f"import runpy, os, signal; runpy.run_path({str(HERE / 'device_calls.py')!r}); "
        for end, what in (("raise ValueError('a|b')", "exit code 1"), ("os.kill(os.getpid(), signal.SIGKILL)", "signal 9 (SIGKILL)"),
                          ("os.abort()", "signal 6 (SIGABRT)")):
            program = shlex.join([sys.executable, "-c", run + end])
            _, _, outputs, summary = self.run_step("dry-run", f"--device T4 --context 1MiB -- {program}")
            self.assertEqual((outputs["verdict"], outputs["peak-bytes"]), ("ended early", str(301 << 20)))
            self.assertIn(f"| ended before its end with | {what} |", summary)
            self.assertIn("| peak until then | 0.29 GiB |", summary)

    def test_without_a_pull_request_only_the_summary(self):
        code, _, _, summary = self.run_step("check", f"{SNAPSHOT} --max-ooms 1", event={"ref": "refs/heads/main"})
        self.assertEqual(code, 0)
        self.assertIn("passed", summary)
        self.run_step("check", f"{SNAPSHOT} --max-ooms 1", ASHLAR_COMMENT="false")
        self.assertEqual(len(GitHub.comments), 1)

    def test_a_refused_comment_is_a_warning(self):
        GitHub.refuses = True
        code, printed, outputs, _ = self.run_step("check", f"{SNAPSHOT} --max-ooms 1")
        self.assertEqual((code, outputs["verdict"]), (0, "passed"))
        self.assertIn("::warning::the comment could not be written: HTTP Error 403", printed)

    def test_wrong_use_is_an_error(self):
        self.assertEqual(self.run_step("explain", str(SNAPSHOT))[0], 2)
        code, printed, outputs, _ = self.run_step("check", "/nowhere --max-ooms 0")
        self.assertEqual((code, outputs), (3, {}))
        self.assertIn("::error::ashlar check gave no answer", printed)
        self.assertEqual(self.run_step("check", "/nowhere")[0], 2)


if __name__ == "__main__":
    unittest.main()
