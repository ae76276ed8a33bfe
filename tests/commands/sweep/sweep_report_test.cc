// A sweep as it is printed: the JSON by its schema, the text with the JSON's numbers, the documented example and
// recorded files of real programs.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/sweep/sweep.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"
#include "tests/corpus_files.h"
#include "tests/shared_dir.h"

namespace ashlar::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kExample[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";
constexpr char kTrace[] = "a 1 104857600 0\nf 1\na 2 12582912 0\na 3 104857600 0\na 4 3145728 7\n";

absl::StatusOr<whatif::WhatIfInput> ReadSweepInput(const std::string& name, const std::string& bytes,
                                                   const answers::ReplaySettings& settings) {
  const absl::StatusOr<answers::Input> input = answers::LoadInput(bytes);
  if (!input.ok()) return input.status();
  return answers::SweepInputOf(name, *input, settings);
}

answers::SweepAnswer MustSweep(const std::vector<std::pair<std::string, std::string>>& inputs,
                               const answers::ReplaySettings& settings, const whatif::SweepOptions& sweep = {}) {
  std::vector<whatif::WhatIfInput> read;
  for (const auto& [name, bytes] : inputs) {
    absl::StatusOr<whatif::WhatIfInput> input = ReadSweepInput(name, bytes, settings);
    EXPECT_TRUE(input.ok()) << name << ": " << input.status();
    read.push_back(*std::move(input));
  }
  absl::StatusOr<answers::SweepAnswer> out = answers::Sweep(std::move(read), sweep);
  EXPECT_TRUE(out.ok()) << out.status();
  return *std::move(out);
}

// The whole space of the example, once for all tests.
const answers::SweepAnswer& ExampleSweep() {
  static const answers::SweepAnswer report =
      MustSweep({{"run.pickle", FileBytes(kExample)}}, WithCapacity(12 * kGiB).replay);
  return report;
}

json ExpectSoundSweep(const answers::SweepAnswer& report, SchemaCheck& schema) {
  const json document = json::parse(report::ToJson(report));
  schema.Check(document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  const std::string text = report::ToText(report);
  const json& rows = document["rows"];
  EXPECT_EQ(rows.size(), report.result.rows.size());
  int recommended = 0, recorded = 0;
  for (const json& row : rows) {
    recommended += row["is_recommended"].get<bool>();
    recorded += row["is_recorded_setting"].get<bool>();
    EXPECT_EQ(row["traces"].size(), document["traces"].size());
    if (!row["is_recommended"].get<bool>() && !row["is_recorded_setting"].get<bool>()) continue;
    // Always in the text, with its own figures.
    const std::string conf = row["conf"].is_null() ? "as recorded, each its own" : row["conf"].get<std::string>();
    EXPECT_THAT(text, HasSubstr("  " + (conf.empty() ? "default" : conf)));
    EXPECT_THAT(text, HasSubstr(FormatCount(row["driver_calls"].get<std::uint64_t>())));
    EXPECT_THAT(text, HasSubstr(FormatBytes(row["traces"][0]["peak_reserved_bytes"].get<std::uint64_t>())));
  }
  EXPECT_LE(recommended, 1);
  EXPECT_EQ(recorded, 1);
  if (document["paste"].is_null()) {
    EXPECT_THAT(text, Not(HasSubstr("PASTE")));
  } else {
    EXPECT_THAT(text, HasSubstr("\nPASTE   " + document["paste"].get<std::string>() + "\n"));
  }
  for (const char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << static_cast<int>(c);
  return document;
}

// Ranks of one job: what is to be said of several is said once, with whom it holds for.
TEST(SweepReportTest, WhatHoldsForSeveralTracesIsSaidOnce) {
  const std::string run = FileBytes(kExample);
  const answers::SweepAnswer report =
      MustSweep({{"a/run.pickle", run}, {"b/run.pickle", run}, {"run.trace", kTrace}, {"c/other.pickle", run}}, {},
                {.confs = {"max_split_size_mb:128"}, .threads = 1});
  SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/sweep.schema.json")));
  const json document = ExpectSoundSweep(report, schema);
  const std::string text = report::ToText(report);
  std::set<std::pair<std::string, std::string>> seen;
  std::map<std::string, std::vector<int>> holders;
  for (const json& note : document["notes"]) {
    EXPECT_TRUE(seen.emplace(note["name"].get<std::string>(), note["message"].get<std::string>()).second) << note;
    EXPECT_EQ(note["traces"].size(), note["counts"].size());
    for (const json& trace : note["traces"]) holders[note["name"]].push_back(trace.get<int>());
  }
  EXPECT_EQ(holders["fidelity"], (std::vector<int>{0, 1, 3, 2})) << "one for the snapshots, one for the trace";
  EXPECT_EQ(holders["replayed_as"], (std::vector<int>{0, 1, 3, 2}));
  const auto count = [&text](const std::string& part) {
    std::size_t out = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
    return out;
  };
  EXPECT_EQ(count("fidelity 100.00 %: "), 1u) << text;
  EXPECT_EQ(count("  - a/run.pickle, b/run.pickle, other.pickle: replayed as torch-2.10"), 1u) << text;
  EXPECT_EQ(count("  - run.trace: "), 3u) << text;
}

TEST(SweepReportTest, TheJsonIsWhatItsSchemaSays) {
  SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/sweep.schema.json")));
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  const json example = ExpectSoundSweep(ExampleSweep(), schema);
  EXPECT_EQ(example["traces"][0]["fidelity"]["is_exact"], true);
  EXPECT_EQ(example["is_complete"], true);
  const json trace = ExpectSoundSweep(MustSweep({{"a.txt", kTrace}, {"b.txt", kTrace}}, {}), schema);
  EXPECT_TRUE(trace["traces"][0]["fidelity"].is_null());
  EXPECT_TRUE(trace["traces"][0]["capacity_bytes"].is_null());
  EXPECT_TRUE(trace["rows"][0]["traces"][0]["feasible"].is_null());
  const json given = ExpectSoundSweep(
      MustSweep({{"a.txt", kTrace}}, {}, {.confs = {"max_split_size_mb:64,expandable_segments:True"}}), schema);
  EXPECT_TRUE(given["space_size"].is_null());
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
}

// What a fixed list finds, the search finds too, and both name the same setting here.
TEST(SweepReportTest, ExplainAndSweepAdviseTheSameOnTheExample) {
  const answers::SweepAnswer& sweep = ExampleSweep();
  const json explained = json::parse(report::ToJson(
      {*answers::ExplainSnapshot(*formats::ReadTorchSnapshot(FileBytes(kExample)), WithCapacity(12 * kGiB))}));
  const nlohmann::json& paste = explained["paste"];
  EXPECT_EQ(sweep.result.advice.paste, paste.is_null() ? std::nullopt : std::optional(paste.get<std::string>()));
  // Each row of explain is a row of the sweep, or one that does as well, with the same figures.
  for (const json& row : explained["what_if"]) {
    const bool is_found = std::any_of(sweep.result.rows.begin(), sweep.result.rows.end(), [&](const auto& other) {
      return other.traces[0].peak_reserved_bytes == row["peak_reserved_bytes"].get<std::uint64_t>() &&
             other.traces[0].driver_calls == row["driver_calls"].get<std::uint64_t>();
    });
    EXPECT_TRUE(is_found) << row;
  }
}

TEST(SweepReportTest, WhatCannotBeSweptIsRefusedInOneLine) {
  const auto refusal = [](const std::string& bytes, const answers::ReplaySettings& settings) {
    return ReadSweepInput("x", bytes, settings).status();
  };
  EXPECT_THAT(std::string(refusal("CUDA out of memory. Tried to allocate 2.00 GiB", {}).message()),
              HasSubstr("not a PyTorch memory snapshot"));
  EXPECT_THAT(std::string(refusal("e\n", {}).message()), HasSubstr("no allocation"));
  EXPECT_TRUE(absl::IsOutOfRange(refusal(kTrace, WithDevice(0).replay)));
}

TEST(SweepReportTest, RealRecordsGiveSoundSweeps) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/sweep.schema.json")));
  std::size_t swept = 0;
  for (const std::string& file : SnapshotFiles()) {
    SCOPED_TRACE(file);
    const absl::StatusOr<whatif::WhatIfInput> input = ReadSweepInput(file, *formats::ReadInput(file), {});
    if (!input.ok()) {
      EXPECT_THAT(std::string(input.status().message()), HasSubstr("records no allocations"));
      continue;
    }
    const answers::SweepAnswer report = *answers::Sweep({*input}, {.budget_replays = 25});
    const json document = ExpectSoundSweep(report, schema);
    EXPECT_EQ(document["traces"][0]["fidelity"]["matched"], document["traces"][0]["fidelity"]["total"]);
    ++swept;
  }
  EXPECT_GE(swept, 15u);
}

}  // namespace
}  // namespace ashlar::tests
