"""The server of the Model Context Protocol, asked as agents ask: by lines, and by the official client where it is here.

    mcp_test.py ASHLAR SNAPSHOT
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ASHLAR, SNAPSHOT = (os.path.abspath(path) for path in sys.argv[1:3])
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.65 GiB of "
    "which 900.00 MiB is free. Process 77 has 22.77 GiB memory in use. Of the allocated memory 15.10 GiB is allocated "
    "by PyTorch, and 7.20 GiB is reserved by PyTorch but unallocated."
)


class McpTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(SNAPSHOT, os.path.join(self.folder, "run.pickle"))

    def lines(self, *requests, flags=()):
        text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in requests)
        run = subprocess.run(
            [ASHLAR, "mcp", *flags], input=text, capture_output=True, text=True, cwd=self.folder, timeout=120
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def call(self, name, arguments, flags=()):
        request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        (answer,) = self.lines(request, flags=flags)
        self.assertEqual(answer["id"], 7)
        return answer.get("result", answer)

    def text(self, result):
        return result["content"][0]["text"]

    def test_begins_with_the_version_that_both_know(self):
        for asked, given in (("2024-11-05", "2024-11-05"), ("2199-01-01", "2025-06-18")):
            request = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": asked}}
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            (answer,) = self.lines(request, note)
            self.assertEqual(answer["result"]["protocolVersion"], given)
            self.assertEqual(answer["result"]["serverInfo"]["name"], "ashlar")

    def test_a_message_is_explained(self):
        result = self.call("explain", {"text": MESSAGE})
        self.assertFalse(result["isError"])
        self.assertIn("VERDICT        fragmentation", self.text(result))

    def test_an_answer_as_an_object_too(self):
        result = self.call("explain", {"inputs": ["run.pickle"], "format": "json"})
        whole = subprocess.run(
            [ASHLAR, "explain", os.path.join(self.folder, "run.pickle"), "--json"], capture_output=True, text=True
        )
        self.assertEqual(result["structuredContent"], json.loads(whole.stdout))

    def test_two_files_are_compared(self):
        result = self.call("diff", {"before": "run.pickle", "after": "./run.pickle"})
        self.assertFalse(result["isError"], self.text(result))

    def test_the_guide(self):
        self.assertIn("my_training_died", self.text(self.call("guide", {})))
        self.assertTrue(self.text(self.call("guide", {"topic": "fit"})).startswith("# fit"))
        self.assertTrue(self.call("guide", {"topic": "--help"})["isError"])

    def test_nothing_outside_of_the_folder_is_read(self):
        os.symlink("/etc/passwd", os.path.join(self.folder, "inside.txt"))
        beside = self.folder + "-beside"
        os.mkdir(beside)
        self.addCleanup(shutil.rmtree, beside)
        shutil.copy(SNAPSHOT, os.path.join(beside, "run.pickle"))
        for path in ("/etc/passwd", "../" + os.path.basename(beside) + "/run.pickle", "inside.txt"):
            result = self.call("explain", {"inputs": [path]})
            self.assertTrue(result["isError"])
            self.assertIn("lies outside of", self.text(result))
        self.assertIn("no-such", self.text(self.call("explain", {"inputs": ["no-such.pickle"]})))

    def test_a_value_is_no_flag(self):
        result = self.call("explain", {"inputs": ["--help"]})
        self.assertTrue(result["isError"])
        result = self.call("estimate", {"model": "run.pickle", "device": "--json-to=stolen"})
        self.assertTrue(result["isError"])
        self.assertEqual(os.listdir(self.folder), ["run.pickle"])

    def test_programs_run_only_where_it_is_allowed(self):
        result = self.call("dry_run", {"command": ["touch", "made"]})
        self.assertTrue(result["isError"])
        self.assertIn("--allow-run", self.text(result))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "made")))

    def test_a_program_that_fails_has_an_answer(self):
        result = self.call("dry_run", {"command": ["sh", "-c", "exit 7"], "capacity": "1GiB"}, flags=("--allow-run",))
        if "libashlar_hollow" in self.text(result):
            self.skipTest("no hollow device is built here")
        self.assertFalse(result["isError"], self.text(result))
        self.assertIn("exit code 7", self.text(result))
        result = self.call("dry_run", {"command": ["no-such-program"]}, flags=("--allow-run",))
        self.assertTrue(result["isError"])

    def test_what_is_wrong_is_an_answer(self):
        wrong = self.lines(
            "{\n",
            "[]\n",
            {"jsonrpc": "2.0", "id": 1, "method": "no/such"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "explian", "arguments": {}}},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "explain", "arguments": [1]}},
            {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": []},
            {"jsonrpc": "2.0", "id": 5, "method": "ping"},
        )
        codes = [one.get("error", {}).get("code") for one in wrong]
        self.assertEqual(codes, [-32700, -32600, -32601, -32602, -32602, -32602, None])
        self.assertIn("explain", wrong[3]["error"]["message"])
        result = self.call("explain", {"inputs": [3]})
        self.assertTrue(result["isError"])

    def test_the_official_client(self):
        try:
            from mcp import ClientSession, StdioServerParameters
            from mcp.client.stdio import stdio_client
        except ImportError:
            self.skipTest("the package mcp is not installed for this Python")

        async def ask():
            server = StdioServerParameters(command=ASHLAR, args=["mcp"], cwd=self.folder)
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                tools = await session.list_tools()
                explained = await session.call_tool("explain", {"text": MESSAGE})
                return [tool.name for tool in tools.tools], explained

        names, explained = asyncio.run(ask())
        self.assertEqual(names, ["explain", "diff", "estimate", "guide", "dry_run", "fit"])
        self.assertIn("VERDICT", explained.content[0].text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
