// The view of a watched recording: text that fits any terminal, a line, JSON by its schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "commands/watch/watch.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"
#include "tests/commands/schema_check.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

answers::WatchAnswer Watched() {
  answers::WatchAnswer answer;
  answer.source = "/a/very/long/name/of/a/folder/that/no/narrow/terminal/has/room/for/run\n.ashlar";
  answer.accounting.reserved_bytes = 10 * kGiB;
  answer.accounting.allocated_bytes = 7 * kGiB;
  answer.accounting.stranded_bytes = 2 * kGiB;
  answer.largest_free_bytes = 512 * kMiB;
  answer.total_bytes = 12 * kGiB;
  answer.peak_allocated_bytes = 8 * kGiB;
  answer.events = 1'234'567;
  answer.begin_us = 1'000'000'000;
  answer.last_us = 1'059'900'000;
  answer.rates = answers::WatchRates{12345.4, 0.25, 0};
  for (std::int64_t i = 0; i < 60; ++i) {
    answer.minute.push_back({.second = 1000 + i, .most_allocated_bytes = (i < 30 ? 1 : 8) * kGiB});
  }
  return answer;
}

// Characters, not bytes: each of ours takes one column.
std::size_t ColumnsOf(absl::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TEST(WatchReportTest, EveryLineFitsTheTerminal) {
  for (const std::size_t width :
       {report::kLeastWatchWidth, std::size_t{40}, std::size_t{60}, std::size_t{80}, std::size_t{200}}) {
    const std::string text = report::ToText(Watched(), width);
    for (const absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(ColumnsOf(line), width) << line;
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, HasSubstr("7.00 GiB"));
  }
}

TEST(WatchReportTest, SaysWhyNothingMoreComes) {
  answers::WatchAnswer answer = Watched();
  EXPECT_TRUE(json::parse(report::ToJson(answer))["stopped"].is_null());
  answer.stopped = "the file is gone";
  EXPECT_EQ(json::parse(report::ToJson(answer))["stopped"], "the file is gone");
  EXPECT_THAT(report::ToText(answer, 120), HasSubstr("not ended   the file is gone\n"));
  EXPECT_THAT(report::ToLine(answer), testing::EndsWith("  the file is gone\n"));
}

TEST(WatchReportTest, SaysWhatThereIs) {
  const std::string text = report::ToText(Watched(), 80);
  EXPECT_THAT(text, HasSubstr("  reserved        10.00 GiB █████"));
  EXPECT_THAT(text, HasSubstr("allocs 12,345/s   frees 0.2/s   device calls 0/s   out of memory 0"));
  EXPECT_THAT(text, HasSubstr("peak allocated 8.00 GiB   1,234,567 events   59.9 s   not ended"));
  EXPECT_THAT(text, HasSubstr("allocated in the last 60 s:\n  ▂▂▂"));
  EXPECT_THAT(text, HasSubstr("▂███"));
  EXPECT_EQ(
      report::ToLine(Watched()),
      "59.9 s  reserved 10.00 GiB  allocated 7.00 GiB  stranded 2.00 GiB  largest free 512.00 MiB  allocs 12,345/s  "
      "frees 0.2/s  device calls 0/s\n");
  answers::WatchAnswer timeless = Watched();
  timeless.rates.reset();
  timeless.minute.clear();
  timeless.begin_us = timeless.last_us = std::nullopt;
  EXPECT_THAT(report::ToText(timeless, 80), HasSubstr("rates: not in this trace"));
  EXPECT_THAT(report::ToText(answers::WatchAnswer{}, 80), HasSubstr("  reserved              0 B"));
}

TEST(WatchReportTest, JsonIsAsTheSchemaSays) {
  tests::SchemaCheck schema(json::parse(tests::FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/watch.schema.json")));
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  const json document = json::parse(report::ToJson(Watched()));
  schema.Check(document);
  schema.Check(json::parse(report::ToJson(answers::WatchAnswer{})));
  EXPECT_THAT(schema.errors(), IsEmpty());
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
  EXPECT_EQ(document["reserved_bytes"], 10 * kGiB);
  EXPECT_EQ(document["rates"]["frees_per_second"], 0.25);
  EXPECT_EQ(document["minute"].size(), 60u);
}

}  // namespace
}  // namespace ashlar
