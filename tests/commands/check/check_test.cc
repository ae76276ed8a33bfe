// Limits against recordings whose figures are worked out by hand; what a trace cannot answer never passes; the XML is
// well-formed whatever the input is called.
#include "commands/check/check.h"

#include <string>
#include <vector>

#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/check/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"
#include "tests/commands/recording.h"

namespace ashlar::tests {
namespace {

using Json = nlohmann::json;
using answers::CheckAnswer;
using answers::CheckLimits;
using answers::CheckVerdict;
using testing::HasSubstr;
using testing::IsEmpty;

answers::TracedRun MustTrace(const std::string& bytes, const answers::ReplaySettings& settings = {}) {
  absl::StatusOr<answers::TracedRun> run = answers::TraceInput(*answers::LoadInput(bytes), settings);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

// Reserved 60 and 22 MiB; the last request of 900 MiB fails on 512 MiB.
std::string FailingRun(const std::string& conf = "") {
  Recording run(conf, 512 * kMiB);
  core::Block* first = run.Allocate(60 * kMiB);
  run.Free(first);
  EXPECT_NE(run.Allocate(40 * kMiB), nullptr);  // from the cached 60
  EXPECT_NE(run.Allocate(21 * kMiB), nullptr);  // 20 are left: a segment of 22
  EXPECT_EQ(run.Allocate(900 * kMiB), nullptr);
  return formats::WriteTorchSnapshot(run.Finish());
}

const answers::CheckRow& Only(const CheckAnswer& report) {
  EXPECT_EQ(report.rows.size(), 1u);
  return report.rows.front();
}

CheckVerdict VerdictOn(const answers::TracedRun& run, const CheckLimits& limits) {
  const CheckAnswer report = answers::CheckTrace("x", run, limits);
  EXPECT_EQ(report.Passed(), Only(report).verdict == CheckVerdict::kHolds);
  EXPECT_EQ(Only(report).reason.empty(), report.Passed());
  return Only(report).verdict;
}

// Above an earlier run's peak by bytes or by a share, device by device.
TEST(CheckTest, GrowthIsMeasuredFromABaseline) {
  const answers::TracedRun run = MustTrace(FailingRun());
  ASSERT_TRUE(run.device.has_value());
  const auto verdict = [&](answers::CheckGrowth growth) { return VerdictOn(run, {.max_growth = std::move(growth)}); };
  EXPECT_EQ(verdict({.bytes = 2 * kMiB, .peaks = {{run.device, 80 * kMiB}}}), CheckVerdict::kHolds);
  EXPECT_EQ(verdict({.bytes = 2 * kMiB - 1, .peaks = {{run.device, 80 * kMiB}}}), CheckVerdict::kBroken);
  EXPECT_EQ(verdict({.share = 0.025, .peaks = {{run.device, 80 * kMiB}}}), CheckVerdict::kHolds);
  EXPECT_EQ(verdict({.share = 0.02, .peaks = {{run.device, 80 * kMiB}}}), CheckVerdict::kBroken);
  EXPECT_EQ(verdict({.bytes = kGiB, .peaks = {{*run.device + 1, 80 * kMiB}}}), CheckVerdict::kNotInTrace);
  EXPECT_EQ(verdict({.bytes = kGiB, .peaks = {{std::nullopt, 80 * kMiB}}}), CheckVerdict::kHolds) << "a request trace";
}

TEST(CheckTest, EachLimitAtItsEdge) {
  const answers::TracedRun run = MustTrace(FailingRun());
  EXPECT_EQ(VerdictOn(run, {.max_reserved_bytes = 82 * kMiB}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(run, {.max_reserved_bytes = 82 * kMiB - 1}), CheckVerdict::kBroken);
  // 40 and 22 (a rest of 1 MiB is not split off) allocated of 82 reserved.
  EXPECT_EQ(VerdictOn(run, {.min_utilisation = 62.0 / 82}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(run, {.min_utilisation = 62.0 / 82 + 1e-9}), CheckVerdict::kBroken);
  EXPECT_EQ(VerdictOn(run, {.max_ooms = 1}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(run, {.max_ooms = 0}), CheckVerdict::kBroken);
  // The one failure was retried; nothing could be returned before it.
  EXPECT_EQ(VerdictOn(run, {.max_retries = 1}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(run, {.max_retries = 0}), CheckVerdict::kBroken);
}

TEST(CheckTest, ReasonsNameNumbers) {
  const answers::TracedRun run = MustTrace(FailingRun());
  const CheckAnswer report = answers::CheckTrace("x", run, {.max_reserved_bytes = 80 * kMiB, .max_ooms = 0});
  const std::string text = report::ToText(report);
  EXPECT_THAT(text, HasSubstr("limit   80.00 MiB  measured   82.00 MiB  BROKEN: over by 2.00 MiB at event "));
  EXPECT_THAT(text, HasSubstr("FAILED  of 2: 2 broken, 0 not in this trace"));
  ExpectFitsOneScreen(text);
}

// A segment returned right before another was obtained: a retry, or an empty_cache call before the request.
TEST(CheckTest, RetriesThatMayBeEmptyCacheAreNotGuessed) {
  Recording recording("", 100 * kMiB);
  recording.Free(recording.Allocate(60 * kMiB));
  ASSERT_NE(recording.Allocate(80 * kMiB), nullptr);  // fits only after the cache went back
  const answers::TracedRun run = MustTrace(formats::WriteTorchSnapshot(recording.Finish()));
  EXPECT_EQ(VerdictOn(run, {.max_retries = 0}), CheckVerdict::kNotInTrace);
  EXPECT_EQ(VerdictOn(run, {.max_retries = 1}), CheckVerdict::kHolds);
  EXPECT_THAT(Only(answers::CheckTrace("x", run, {.max_retries = 0})).reason, HasSubstr("between 0 and 1"));
}

TEST(CheckTest, WhatTheTraceCannotAnswerDoesNotPass) {
  Recording recording("", kGiB);
  recording.Allocate(60 * kMiB);
  recording.ForgetEvents();
  const answers::TracedRun state = MustTrace(formats::WriteTorchSnapshot(recording.Finish()));
  EXPECT_EQ(VerdictOn(state, {.max_reserved_bytes = kGiB}), CheckVerdict::kNotInTrace);
  EXPECT_EQ(VerdictOn(state, {.max_reserved_bytes = kMiB}), CheckVerdict::kBroken);  // it held more in the end
  EXPECT_EQ(VerdictOn(state, {.min_utilisation = 0.0}), CheckVerdict::kNotInTrace);
  EXPECT_EQ(VerdictOn(state, {.max_retries = 9}), CheckVerdict::kNotInTrace);
  EXPECT_EQ(VerdictOn(state, {.max_ooms = 9}), CheckVerdict::kNotInTrace);

  // A request trace says nothing of the device.
  const std::string requests = "a 1 62914560 0\nf 1\na 2 83886080 0\n";
  const answers::TracedRun endless = MustTrace(requests);
  EXPECT_EQ(VerdictOn(endless, {.max_reserved_bytes = 140 * kMiB}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(endless, {.max_ooms = 9}), CheckVerdict::kNotInTrace);
  EXPECT_EQ(VerdictOn(endless, {.max_retries = 9}), CheckVerdict::kNotInTrace);
  const answers::TracedRun sized = MustTrace(requests, WithCapacity(100 * kMiB).replay);
  EXPECT_EQ(VerdictOn(sized, {.max_ooms = 0}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(sized, {.max_retries = 0}), CheckVerdict::kBroken);
  EXPECT_EQ(VerdictOn(sized, {.max_retries = 1}), CheckVerdict::kHolds);
  const answers::TracedRun tight = MustTrace(requests, WithCapacity(70 * kMiB).replay);
  EXPECT_EQ(VerdictOn(tight, {.max_ooms = 0}), CheckVerdict::kBroken);
}

// Ten steps that each allocate three blocks, free two and keep one of 1 MiB.
TEST(CheckTest, LeakPerStep) {
  std::string trace;
  for (int step = 0; step < 10; ++step) {
    const auto id = [step](int i) { return std::to_string(step * 10 + i); };
    trace += "a " + id(1) + " 3000000 0\na " + id(2) + " 1048576 0\na " + id(3) + " 5000000 0\n";
    trace += "f " + id(3) + "\nf " + id(1) + "\n";
  }
  const answers::TracedRun run = MustTrace(trace);
  EXPECT_EQ(VerdictOn(run, {.max_leak_bytes_per_step = kMiB}), CheckVerdict::kHolds);
  EXPECT_EQ(VerdictOn(run, {.max_leak_bytes_per_step = kMiB - 1}), CheckVerdict::kBroken);
  EXPECT_EQ(VerdictOn(MustTrace("a 1 100 0\n"), {.max_leak_bytes_per_step = kMiB}), CheckVerdict::kNotInTrace);
}

TEST(CheckTest, NothingReservedHasNoUtilisation) {
  const answers::TracedRun run = MustTrace("y\n");
  EXPECT_EQ(VerdictOn(run, {.min_utilisation = 0.5}), CheckVerdict::kNotInTrace);
}

TEST(CheckTest, JsonFollowsTheSchema) {
  SchemaCheck schema(Json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/check.schema.json")));
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  const answers::TracedRun run = MustTrace(FailingRun());
  const CheckAnswer report = answers::CheckTrace(
      "x", run, {.max_reserved_bytes = UINT64_MAX, .min_utilisation = 0.5, .max_retries = 5, .max_ooms = 0});
  const Json document = Json::parse(report::ToJson(report));
  schema.Check(document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
  EXPECT_EQ(document["passed"], false);
  EXPECT_EQ(document["limits"][0]["limit"], UINT64_MAX);
  EXPECT_EQ(document["limits"][0]["measured"], 82 * kMiB);
  EXPECT_EQ(document["limits"][3]["verdict"], "broken");
}

// Enough of XML to see what is not well-formed: tags close in order, attributes are quoted, & and < only as entities,
// no character that XML 1.0 has no place for. Returns the names of the elements in order.
std::vector<std::string> ParseXml(const std::string& xml, std::string& error) {
  std::vector<std::string> names, open;
  std::size_t at = xml.find("?>") + 2;
  const auto check_text = [&error](const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool is_control = static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\n';
      if (is_control || text[i] == '<' || text[i] == '\x7f') error = "bad character in " + text;
      if (text[i] != '&') continue;
      const std::string entity = text.substr(i, text.find(';', i) - i + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&apos;") {
        error = "bare & in " + text;
      }
    }
  };
  while (at < xml.size() && error.empty()) {
    const std::size_t tag = xml.find('<', at);
    check_text(xml.substr(at, tag - at));
    if (tag == std::string::npos) break;
    std::size_t end = tag + 1;
    std::vector<std::string> values;
    for (bool is_quoted = false; end < xml.size() && (is_quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') {
        is_quoted = !is_quoted;
        if (is_quoted) values.emplace_back();
      } else if (is_quoted) {
        values.back() += xml[end];
      }
    }
    for (const std::string& value : values) check_text(value);
    if (end >= xml.size()) {
      error = "a tag does not end";
      break;
    }
    const std::string inside = xml.substr(tag + 1, end - tag - 1);
    if (inside[0] == '/') {
      if (open.empty() || open.back() != inside.substr(1)) error = "closes what is not open: " + inside;
      if (!open.empty()) open.pop_back();
    } else {
      names.push_back(inside.substr(0, inside.find_first_of(" /")));
      if (inside.back() != '/') open.push_back(names.back());
    }
    at = end + 1;
  }
  if (!open.empty()) error = "left open: " + open.back();
  return names;
}

TEST(CheckTest, JUnitIsWellFormed) {
  const answers::TracedRun run = MustTrace(FailingRun());
  const CheckLimits limits{.max_reserved_bytes = 80 * kMiB, .min_utilisation = 0.5, .max_ooms = 0};
  for (const std::string name : {"plain.pickle", "a\"b<c>&d'e", "tab\tnew\nline\x01\x7f", "\xff\xfe", "x]]>y"}) {
    SCOPED_TRACE(name);
    const std::string xml = report::ToJUnit(answers::CheckTrace(name, run, limits));
    std::string error;
    const std::vector<std::string> names = ParseXml(xml, error);
    EXPECT_EQ(error, "") << xml;
    EXPECT_THAT(names, testing::ElementsAre("testsuites", "testsuite", "testcase", "failure", "testcase", "testcase",
                                            "failure"));
    EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"2\""));
  }
  std::string error;
  ParseXml("<?xml?>\n<a b=\"&\"/>", error);  // the parser can say no
  EXPECT_NE(error, "");
}

TEST(CheckTest, EveryDeviceIsJudged) {
  Recording busy("", kGiB);
  busy.Allocate(300 * kMiB);
  trace::Snapshot snapshot = busy.Finish();
  Recording failing("", 256 * kMiB);
  failing.Allocate(100 * kMiB);
  EXPECT_EQ(failing.Allocate(200 * kMiB), nullptr);
  AddDevice(failing.Finish(), 1, snapshot);
  const std::string bytes = formats::WriteTorchSnapshot(snapshot);
  const absl::StatusOr<std::vector<answers::TracedRun>> runs = answers::TraceDevices(*answers::LoadInput(bytes), {});
  ASSERT_TRUE(runs.ok()) << runs.status();
  const CheckAnswer report = answers::CheckDevices("x", *runs, {.max_reserved_bytes = 200 * kMiB, .max_ooms = 0});
  ASSERT_EQ(report.rows.size(), 4u);
  EXPECT_EQ(report.CountOf(CheckVerdict::kBroken), 2u);  // device 0 holds too much, a request of device 1 failed
  EXPECT_THAT(report::ToText(report),
              testing::AllOf(HasSubstr("device 0: max-reserved"), HasSubstr("device 1: max-ooms")));
  answers::ReplaySettings asked;
  asked.device = 0;
  const absl::StatusOr<std::vector<answers::TracedRun>> one = answers::TraceDevices(*answers::LoadInput(bytes), asked);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(answers::CheckDevices("x", *one, {.max_ooms = 0}).Passed());
}

}  // namespace
}  // namespace ashlar::tests
