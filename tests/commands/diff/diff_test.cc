// Every figure of every view sums to the difference, on hand-made recordings with numbers worked out by hand and on
// pairs of real files; what is on one side only is shown, not dropped.
#include "commands/diff/diff.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/diff/diff.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"
#include "tests/commands/recording.h"
#include "tests/corpus_files.h"

namespace ashlar::tests {
namespace {

using Json = nlohmann::json;
using answers::DiffMoment;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

answers::TracedRun DiffMustTrace(const std::string& bytes) {
  absl::StatusOr<answers::TracedRun> run = answers::TraceInput(*answers::LoadInput(bytes), {});
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

answers::TracedRun DiffMustTrace(Recording& recording) {
  return DiffMustTrace(formats::WriteTorchSnapshot(recording.Finish()));
}

Json DiffSchema() { return Json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/diff.schema.json")); }

// Adds up each figure of a view's rows and holds it against the whole, in 64-bit integers of the JSON.
void ExpectRowsSum(const Json& document, const char* view) {
  SCOPED_TRACE(view);
  if (document[view].is_null()) return;
  for (const char* side : {"a", "b", "difference"}) {
    const Json& whole = std::string(side) == "difference" ? document[side] : document[side]["parts"];
    std::map<std::string, std::int64_t> sums;
    std::map<std::string, bool> is_unknown;
    for (const Json& row : document[view]) {
      for (const auto& [key, value] : row[side].items()) {
        is_unknown[key] = is_unknown[key] || value.is_null();
        if (!value.is_null()) sums[key] += value.get<std::int64_t>();
      }
    }
    for (const auto& [key, sum] : sums) {
      if (is_unknown[key]) {
        EXPECT_TRUE(whole[key].is_null()) << side << " " << key;
      } else {
        EXPECT_EQ(sum, whole[key].get<std::int64_t>()) << side << " " << key;
      }
    }
  }
}

Json ExpectSoundDiff(const answers::DiffAnswer& report, SchemaCheck& schema) {
  const Json document = Json::parse(report::ToJson(report));
  schema.Check(document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  for (const char* view : {"by_stack", "by_phase", "by_size", "by_segment"}) ExpectRowsSum(document, view);
  if (!document["by_name"].is_null()) {
    for (const char* side : {"a", "b", "difference"}) {
      std::int64_t bytes = 0;
      for (const Json& row : document["by_name"]) bytes += row[side]["bytes"].get<std::int64_t>();
      const Json& whole = std::string(side) == "difference" ? document[side] : document[side]["parts"];
      EXPECT_EQ(bytes, whole["live_bytes"].get<std::int64_t>()) << side;
    }
  }
  for (const char* side : {"a", "b"}) {
    const Json& parts = document[side]["parts"];
    EXPECT_EQ(parts["reserved_bytes"].get<std::uint64_t>(),
              parts["in_use_bytes"].get<std::uint64_t>() + parts["stranded_bytes"].get<std::uint64_t>() +
                  parts["whole_free_bytes"].get<std::uint64_t>() + parts["private_pool_bytes"].get<std::uint64_t>());
  }
  ExpectFitsOneScreen(report::ToText(report));
  return document;
}

Json RowOf(const Json& rows, const std::string& label) {
  for (const Json& row : rows) {
    if (row["label"] == label) return row;
  }
  ADD_FAILURE() << label << " is not in " << rows;
  return {};
}

// A: one block of 30 MiB in a segment of its own. B: the same, one of 5 MiB (in a segment of 20) and one of 512 bytes
// (in one of 2 MiB); another of 40 MiB was freed and is cached.
TEST(DiffTest, HandMadeNumbers) {
  Recording a("", kGiB), b("", kGiB);
  a.Allocate(30 * kMiB);
  b.Allocate(30 * kMiB);
  b.Free(b.Allocate(40 * kMiB));
  b.Allocate(5 * kMiB);
  b.Allocate(100);
  const absl::StatusOr<answers::DiffAnswer> diff =
      answers::MakeDiff("a", DiffMustTrace(a), "b", DiffMustTrace(b), DiffMoment::kEnd);
  ASSERT_TRUE(diff.ok()) << diff.status();
  SchemaCheck schema(DiffSchema());
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  const Json document = ExpectSoundDiff(*diff, schema);
  EXPECT_THAT(schema.UnseenObjects(), ElementsAre("name_row", "named_difference", "named_parts", "names"));
  const Json& difference = document["difference"];
  // The 5 MiB came out of the cached 40 MiB: 35 MiB stay free beside them.
  EXPECT_EQ(difference["reserved_bytes"], 42 * kMiB);
  EXPECT_EQ(difference["live_bytes"], 5 * kMiB + 100);
  EXPECT_EQ(difference["rounding_bytes"], 412);
  EXPECT_EQ(difference["stranded_bytes"], 35 * kMiB + 2 * kMiB - 512);
  EXPECT_EQ(difference["whole_free_bytes"], 0);
  EXPECT_EQ(difference["blocks"], 2);
  EXPECT_EQ(difference["segments"], 2);
  const Json same = RowOf(document["by_size"], "large, 16.00 MiB to 32.00 MiB");
  EXPECT_EQ(same["found_in"], "both");
  EXPECT_EQ(same["difference"]["in_use_bytes"], 0);
  const Json fresh = RowOf(document["by_size"], "small, 512 B to 1.00 KiB");
  EXPECT_EQ(fresh["found_in"], "b");
  EXPECT_EQ(fresh["difference"]["in_use_bytes"], 512);
  EXPECT_EQ(fresh["a"]["blocks"], 0);
  EXPECT_EQ(RowOf(document["by_segment"], "large, 32.00 MiB to 64.00 MiB")["difference"]["stranded_bytes"], 35 * kMiB);
  // The recorder here keeps no stacks, and no phase is known: no view, and the first is said.
  EXPECT_TRUE(document["by_stack"].is_null());
  EXPECT_TRUE(document["by_phase"].is_null());
  EXPECT_THAT(report::ToText(*diff), HasSubstr("note: a: call stacks are not in this trace"));
  EXPECT_THAT(report::ToText(*diff), HasSubstr("only in B"));
}

// A run whose blocks were allocated on these lines of one file, each of as many MiB as said.
struct DiffLine {
  std::int64_t line;
  std::string function;
  std::uint64_t mib;
};

trace::Snapshot RunOfLines(const std::vector<DiffLine>& lines) {
  trace::Snapshot out;
  std::uint64_t at = std::uint64_t{1} << 40;
  for (const DiffLine& line : lines) {
    const trace::FrameId frame = out.stacks.InternFrame("train.py", line.line, line.function);
    const trace::StackId stack = out.stacks.InternStack({&frame, 1});
    const std::uint64_t bytes = line.mib * kMiB;
    out.segments.push_back(
        {0, at, bytes, Stream{}, false, false, {}, stack, {{at, bytes, bytes, trace::BlockState::kLive, stack}}});
    at += bytes;
  }
  return out;
}

Json StackRows(const std::vector<DiffLine>& a, const std::vector<DiffLine>& b) {
  const absl::StatusOr<answers::DiffAnswer> diff =
      answers::MakeDiff("a", DiffMustTrace(formats::WriteTorchSnapshot(RunOfLines(a))), "b",
                        DiffMustTrace(formats::WriteTorchSnapshot(RunOfLines(b))), DiffMoment::kEnd);
  EXPECT_TRUE(diff.ok()) << diff.status();
  SchemaCheck schema(DiffSchema());
  return ExpectSoundDiff(*diff, schema)["by_stack"];
}

TEST(DiffTest, LinesThatMovedDifferInNothing) {
  // Lines 10 and 11 became 11 and 12: the number 11 stands for another line on each side.
  const Json rows = StackRows({{10, "step", 30}, {11, "step", 40}, {20, "load", 50}},
                              {{11, "step", 30}, {12, "step", 40}, {21, "load", 50}});
  ASSERT_EQ(rows.size(), 3u);
  for (const Json& row : rows) {
    EXPECT_EQ(row["found_in"], "both") << row;
    EXPECT_EQ(row["difference"]["in_use_bytes"], 0) << row;
  }
  EXPECT_EQ(RowOf(rows, "train.py:11 step")["a"]["in_use_bytes"], 30 * kMiB);
}

TEST(DiffTest, ALineMoreInAFunctionIsOne) {
  const Json rows = StackRows({{10, "step", 30}}, {{10, "step", 30}, {11, "step", 40}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(RowOf(rows, "train.py:11 step")["found_in"], "b");
  const Json other = StackRows({{10, "step", 30}}, {{10, "load", 30}});  // the same line of another function
  EXPECT_EQ(RowOf(other, "train.py:10 step")["found_in"], "a");
  EXPECT_EQ(RowOf(other, "train.py:10 load")["found_in"], "b");
}

// A block of so many MiB each, held by that name; nobody holds one without a name.
struct DiffName {
  std::string kind;
  std::string name;
  std::int64_t line;
  std::string function;
  std::uint64_t mib;
};

trace::Snapshot RunOfNames(const std::string& folder, const std::vector<DiffName>& names) {
  trace::Snapshot out;
  trace::Holders& holders = out.holders.emplace();
  holders.when = "call";
  std::uint64_t at = std::uint64_t{1} << 40;
  for (const DiffName& name : names) {
    const std::uint64_t bytes = name.mib * kMiB;
    out.segments.push_back({0,
                            at,
                            bytes,
                            Stream{},
                            false,
                            false,
                            {},
                            trace::kNoStack,
                            {{at, bytes, bytes, trace::BlockState::kLive, trace::kNoStack}}});
    if (!name.name.empty()) {
      holders.blocks.push_back({at, static_cast<std::uint32_t>(holders.holders.size()), {}});
      trace::Holder& holder = holders.holders.emplace_back();
      holder.kind = name.kind;
      holder.name = name.name;
      holder.file = folder + "train.py";
      holder.line = name.line;
      holder.function = name.function;
    }
    at += bytes;
  }
  return out;
}

answers::DiffAnswer NameDiff(const trace::Snapshot& a, const trace::Snapshot& b) {
  absl::StatusOr<answers::DiffAnswer> diff =
      answers::MakeDiff("a", DiffMustTrace(formats::WriteTorchSnapshot(a)), "b",
                        DiffMustTrace(formats::WriteTorchSnapshot(b)), DiffMoment::kEnd);
  EXPECT_TRUE(diff.ok()) << diff.status();
  return *std::move(diff);
}

TEST(DiffTest, WhatGrewIsToldByItsName) {
  const answers::DiffAnswer diff = NameDiff(
      RunOfNames("/a/",
                 {{"local", "losses[]", 31, "train", 10}, {"local", "model", 40, "main", 50}, {"", "", 0, "", 3}}),
      RunOfNames("/b/copy/", {{"local", "losses[]", 33, "train", 10},
                              {"local", "losses[]", 33, "train", 20},
                              {"local", "model", 42, "main", 50},
                              {"graph", "losses[]", 33, "train", 7},
                              {"", "", 0, "", 2}}));
  SchemaCheck schema(DiffSchema());
  const Json document = ExpectSoundDiff(diff, schema);
  EXPECT_EQ(document["a"]["names"]["live_bytes"], 63 * kMiB);
  EXPECT_EQ(document["b"]["names"]["named_bytes"], 87 * kMiB);
  const Json& rows = document["by_name"];
  ASSERT_EQ(rows.size(), 4u);
  // The list grew by two blocks, though its line and its folder are others now; its graph is a row of its own.
  EXPECT_EQ(rows[0]["name"], "losses[]");
  EXPECT_EQ(rows[0]["line"], 33);
  EXPECT_EQ(rows[0]["found_in"], "both");
  EXPECT_EQ(rows[0]["a"], (Json{{"bytes", 10 * kMiB}, {"blocks", 1}}));
  EXPECT_EQ(rows[0]["b"], (Json{{"bytes", 30 * kMiB}, {"blocks", 2}}));
  EXPECT_EQ(rows[0]["difference"], (Json{{"bytes", 20 * kMiB}, {"blocks", 1}}));
  EXPECT_EQ(rows[1]["kind"], "graph");
  EXPECT_EQ(rows[1]["found_in"], "b");
  EXPECT_EQ(rows[2]["kind"], "not_found");
  EXPECT_EQ(rows[2]["difference"]["bytes"], -static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(rows[3]["name"], "model");
  EXPECT_EQ(rows[3]["difference"]["bytes"], 0);
  const std::string text = report::ToText(diff);
  EXPECT_THAT(text, HasSubstr("BY NAME   (live tensors by who holds them; sums to +26.00 MiB; A has names of 95.2 %, "
                              "B of 97.8 %)"));
  EXPECT_THAT(text,
              HasSubstr("     +20.00 MiB  10.00 MiB -> 30.00 MiB     losses[] in train.py:33 train, 1 -> 2 blocks"));
  EXPECT_THAT(text, HasSubstr("only in B                  losses[] (its graph) in train.py:33 train, 0 -> 1 blocks"));
  EXPECT_THAT(report::ToMarkdown(diff),
              HasSubstr("| +20.00 MiB | 10.00 MiB -> 30.00 MiB | 1 -> 2 blocks | losses\\[\\] in train.py:33 train |"));
}

TEST(DiffTest, ALineThatANameHasNotAloneIsLeftOut) {
  const trace::Snapshot one = RunOfNames("", {{"local", "x", 3, "f", 1}, {"local", "x", 9, "f", 1}});
  SchemaCheck schema(DiffSchema());
  const Json rows = ExpectSoundDiff(NameDiff(one, one), schema)["by_name"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0]["line"].is_null());
  EXPECT_EQ(rows[0]["b"]["blocks"], 2);
}

TEST(DiffTest, ASideWithoutNamesIsSaid) {
  const trace::Snapshot with = RunOfNames("", {{"local", "x", 3, "f", 1}});
  trace::Snapshot without = with;
  without.holders.reset();
  SchemaCheck schema(DiffSchema());
  const answers::DiffAnswer diff = NameDiff(with, without);
  const Json document = ExpectSoundDiff(diff, schema);
  EXPECT_TRUE(document["by_name"].is_null());
  EXPECT_TRUE(document["b"]["names"].is_null());
  EXPECT_EQ(document["a"]["names"]["named_bytes"], kMiB);
  EXPECT_THAT(report::ToText(diff), HasSubstr("note: b: who holds the memory is not in this file"));
  EXPECT_THAT(report::ToText(NameDiff(without, without)), Not(HasSubstr("who holds the memory")));
}

TEST(DiffTest, PendingBlocksCount) {
  Recording a("", kGiB), b("", kGiB);
  a.Allocate(30 * kMiB);
  core::Block* block = b.Allocate(30 * kMiB);
  b.allocator().RecordStream(block, Stream{7});
  b.Free(block);
  const absl::StatusOr<answers::DiffAnswer> diff =
      answers::MakeDiff("a", DiffMustTrace(a), "b", DiffMustTrace(b), DiffMoment::kEnd);
  ASSERT_TRUE(diff.ok()) << diff.status();
  SchemaCheck schema(DiffSchema());
  const Json document = ExpectSoundDiff(*diff, schema);
  const Json row = RowOf(document["by_size"], "large, 16.00 MiB to 32.00 MiB");
  EXPECT_EQ(row["difference"]["pending_bytes"], 30 * kMiB);
  EXPECT_EQ(row["difference"]["allocated_bytes"], -static_cast<std::int64_t>(30 * kMiB));
  EXPECT_EQ(row["difference"]["in_use_bytes"], 0);
}

TEST(DiffTest, AMomentThatIsNotThereIsNamed) {
  Recording a("", kGiB);
  a.Allocate(30 * kMiB);
  const answers::TracedRun run = DiffMustTrace(a);
  const absl::StatusOr<answers::DiffAnswer> diff = answers::MakeDiff("left", run, "right", run, DiffMoment::kOom);
  EXPECT_EQ(diff.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(diff.status().message()), HasSubstr("left: --at oom"));
}

TEST(DiffTest, TheExampleAgainstItselfIsZeroAndItsStacksAreShown) {
  const answers::TracedRun run = DiffMustTrace(FileBytes(ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle"));
  SchemaCheck schema(DiffSchema());
  for (const DiffMoment moment : {DiffMoment::kPeak, DiffMoment::kOom, DiffMoment::kEnd}) {
    const absl::StatusOr<answers::DiffAnswer> diff = answers::MakeDiff("a", run, "b", run, moment);
    ASSERT_TRUE(diff.ok()) << diff.status();
    const Json document = ExpectSoundDiff(*diff, schema);
    for (const auto& [key, value] : document["difference"].items()) EXPECT_EQ(value, 0) << key;
    EXPECT_EQ(RowOf(document["by_stack"], "adamw.py:112 step")["found_in"], "both");
  }
}

// Blocks in use, added up from the spans alone.
std::uint64_t InUseBytes(const timeline::Timeline& timeline) {
  std::uint64_t bytes = 0;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (block.free_completed_event > timeline.last_event()) bytes += block.size_bytes;
  }
  return bytes;
}

TEST(DiffTest, RealPairsSumAndTurnRound) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  SchemaCheck schema(DiffSchema());
  const std::vector<std::string> files = SnapshotFiles();
  std::vector<answers::TracedRun> runs;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    runs.push_back(DiffMustTrace(*bytes));
  }
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    SCOPED_TRACE(files[i]);
    const auto diff = [&](std::size_t a, std::size_t b) {
      absl::StatusOr<answers::DiffAnswer> out = answers::MakeDiff("a", runs[a], "b", runs[b], DiffMoment::kEnd);
      EXPECT_TRUE(out.ok()) << out.status();
      return ExpectSoundDiff(*out, schema);
    };
    const Json there = diff(i, i + 1);
    const Json back = diff(i + 1, i);
    EXPECT_EQ(there["a"]["parts"], back["b"]["parts"]);
    for (const auto& [key, value] : there["difference"].items()) {
      if (value.is_null()) continue;
      EXPECT_EQ(value.get<std::int64_t>(), -back["difference"][key].get<std::int64_t>()) << key;
    }
    EXPECT_EQ(there["difference"]["in_use_bytes"].get<std::int64_t>(),
              static_cast<std::int64_t>(InUseBytes(runs[i + 1].timeline) - InUseBytes(runs[i].timeline)));
  }
}

}  // namespace
}  // namespace ashlar::tests
