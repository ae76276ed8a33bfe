"""A page made small: at each moment that is kept all is as on the whole page.

    ASHLAR_PREFIX=build/release python3 small_page_test.py
"""

import base64
import gzip
import json
import os
import re
import struct
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402
from ashlar_gpu import _small_page  # noqa: E402

SNAPSHOT = os.path.join(ROOT, "docs", "examples", "training_oom.pickle")
SIZES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f64": "d"}
SUMS = ("time_us", "requested", "allocated", "active", "reserved", "stranded", "private_free")


class Page:
    """A page's first run, read as docs/internals/page.md says, value by value."""

    def __init__(self, text):
        self.document = json.loads(re.search(r'id="ashlar-document">(.*?)</script>', text, re.DOTALL)[1])
        self.blobs = [gzip.decompress(base64.b64decode(one)) for one in re.findall(r'id="ashlar-blob-\d+">([^<]*)</script>', text)]
        self.run, self.input = self.document["runs"][0], self.document["inputs"][0]
        self.columns = {name: self.values(column) for name, column in self.run["columns"].items()}

    def values(self, column):
        raw = struct.unpack_from(f"<{column['count']}{SIZES[column['type']]}", self.blobs[column["blob"]], column["offset"])
        if column["delta"]:
            raw = [sum(raw[:i + 1]) for i in range(len(raw))] if len(raw) < 300 else self.summed(raw)
        return [column["base"] + column["scale"] * value for value in raw]

    @staticmethod
    def summed(raw):
        out, total = [], 0
        for value in raw:
            total += value
            out.append(total)
        return out

    def frames(self, stack):
        stacks = self.input["stacks"]
        if stack == 0xFFFFFFFF:
            return None
        return (stacks["labels"][stack], [tuple(stacks["frames"][frame]) for frame in
                                          stacks["stack_frames"][stacks["starts"][stack]:stacks["starts"][stack + 1]]])

    def block(self, number):
        column = self.columns
        return (*(column[f"block.{name}"][number] for name in ("address", "size", "flags", "alloc_event")),
                self.frames(column["block.stack"][number])[0] if column["block.stack"][number] != 0xFFFFFFFF else None)

    def blocks_at(self, moment):
        column = self.columns
        return {(self.block(number), freed <= moment) for number, (alloc, freed, done) in enumerate(zip(
            column["block.alloc"], column["block.freed"], column["block.done"])) if alloc <= moment < done}

    def segments_at(self, moment):
        column, out = self.columns, set()
        for number, end in enumerate(column["segment.end"]):
            begin, stop = column["segment.extent"][number:number + 2]
            begun = [one for one in range(begin, stop) if column["extent.moment"][one] <= moment]
            if begun and moment < end:
                out.add((column["extent.address"][begun[-1]], column["extent.size"][begun[-1]], column["segment.flags"][number]))
        return out

    def event(self, moment):
        return self.columns["event"][moment] if moment < self.run["moment_count"] else None


class Small(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = ashlar_gpu.report(SNAPSHOT, capacity="12GiB").html
        cls.whole = Page(text)
        cls.texts = list(_small_page.smaller(text, 1 << 30))
        cls.pages = [Page(one) for one in cls.texts]

    def test_each_is_smaller_and_says_so(self):
        lengths = [len(text) for text in self.texts]
        self.assertEqual(lengths, sorted(lengths, reverse=True))
        self.assertEqual(len(self.texts), 1 + len(_small_page.MOMENTS))
        self.assertEqual([page.run["is_thinned"] for page in self.pages], [False] + [True] * len(_small_page.MOMENTS))
        for page in self.pages:
            self.assertEqual([run["kind"] for run in page.document["runs"]], ["observed"])
            self.assertEqual((page.run["event_count"], page.run["moment_count"]), (self.whole.run["event_count"], len(page.columns["event"])))

    def test_the_sums_of_a_moment_are_those_of_the_whole_page(self):
        at = {event: moment for moment, event in enumerate(self.whole.columns["event"])}
        for page in self.pages:
            for name in ("event", "x", *SUMS):
                if name not in self.whole.columns:
                    continue
                wanted = [self.whole.columns[name][at[event]] for event in page.columns["event"]]
                self.assertEqual(page.columns[name], wanted, name)

    def test_its_blocks_and_segments_too(self):
        at = {event: moment for moment, event in enumerate(self.whole.columns["event"])}
        for page in (self.pages[1], self.pages[-1]):
            for moment in range(0, page.run["moment_count"], max(1, page.run["moment_count"] // 25)):
                of_whole = at[page.event(moment)]
                self.assertEqual(page.blocks_at(moment), self.whole.blocks_at(of_whole))
                self.assertEqual(page.segments_at(moment), self.whole.segments_at(of_whole))

    def test_what_the_answer_names_is_kept(self):
        for page in self.pages:
            for facts in (lambda one: [one.run["verdict_moment"], *one.run["failures"], *(peak["moment"] for peak in one.run["peaks"].values())],
                          lambda one: [cause["moment"] for cause in one.input["causes"]],
                          lambda one: [named["moment"] for named in one.input["evidence_moments"]]):
                self.assertEqual([page.event(moment) for moment in facts(page)], [self.whole.event(moment) for moment in facts(self.whole)])
            for ours, theirs in zip(page.input["causes"], self.whole.input["causes"]):
                self.assertEqual([page.frames(stack) for stack in ours["stacks"]], [self.whole.frames(stack) for stack in theirs["stacks"]])
                live = {self.whole.block(number) for number in theirs["blocks"]}
                self.assertLessEqual({page.block(number) for number in ours["blocks"]}, live)

    def test_of_no_page_there_is_none(self):
        self.assertEqual(list(_small_page.smaller("<p>", 1 << 30)), [])


if __name__ == "__main__":
    unittest.main()
