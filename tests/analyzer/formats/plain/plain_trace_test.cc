#include "analyzer/formats/plain/plain_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"
#include "tests/shared_dir.h"

namespace ashlar::formats {
namespace {

using trace::Op;
using trace::OpKind;

std::string PlainTraceErrorOf(absl::string_view text) {
  const auto trace = ParsePlainTrace(text);
  return trace.ok() ? "no error" : std::string(trace.status().message());
}

TEST(PlainTraceTest, ReadsEveryRequest) {
  const auto trace = ParsePlainTrace("a 7 512 3\nr 7 9\nf 7\ny\ne\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->requests.size(), 5u);
  EXPECT_EQ(trace->id_count, 1u);
  EXPECT_EQ(trace->requests[0].kind, OpKind::kAlloc);
  EXPECT_EQ(trace->requests[0].bytes, 512u);
  EXPECT_EQ(trace->requests[0].stream, Stream{3});
  EXPECT_EQ(trace->requests[0].id, 0u);
  EXPECT_EQ(trace->requests[1].kind, OpKind::kRecordStream);
  EXPECT_EQ(trace->requests[1].stream, Stream{9});
  EXPECT_EQ(trace->requests[1].id, 0u);
  EXPECT_EQ(trace->requests[2].kind, OpKind::kFree);
  EXPECT_EQ(trace->requests[3].kind, OpKind::kDeviceSync);
  EXPECT_EQ(trace->requests[4].kind, OpKind::kEmptyCache);
}

TEST(PlainTraceTest, SkipsRemarksBlankLinesAndComments) {
  const auto trace = ParsePlainTrace(
      "S 140161023213568 20971520 0\nc anything at all\n\n# note\n  \t\r\n"
      "a 1 512 0 140161023213568\r\n  f\t1  # done\ny");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests.size(), 3u);
}

TEST(PlainTraceTest, AnEmptyTextIsAnEmptyTrace) {
  const auto trace = ParsePlainTrace("");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->requests.empty());
  EXPECT_EQ(trace->id_count, 0u);
}

TEST(PlainTraceTest, SparseIdsComeOutDenseInOrderOfAppearance) {
  const auto trace =
      ParsePlainTrace("a 18446744073709551615 1 0\na 5 1 0\na 9000000000 1 0\nf 18446744073709551615\nf 5\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::vector<std::uint32_t> ids;
  for (const Op& request : trace->requests) ids.push_back(request.id);
  EXPECT_THAT(ids, testing::ElementsAre(0, 1, 2, 0, 1));
  EXPECT_EQ(trace->id_count, 3u);
}

TEST(PlainTraceTest, AnIdMayBeAllocatedAgainAfterItsFree) {
  const auto trace = ParsePlainTrace("a 1 512 0\nf 1\na 1 1024 0\nr 1 2\nf 1\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->id_count, 1u);
}

TEST(PlainTraceTest, ErrorsSayWhereAndTheMend) {
  EXPECT_EQ(PlainTraceErrorOf("a 1 512 0\nx 1\n"),
            "trace 2:1: unknown request 'x'; a line starts with a, f, r, y or e");
  EXPECT_EQ(PlainTraceErrorOf("abc 1\n"), "trace 1:1: unknown request 'abc'; a line starts with a, f, r, y or e");
  EXPECT_EQ(PlainTraceErrorOf("a 1 512\n"), "trace 1:8: the stream is missing");
  EXPECT_EQ(PlainTraceErrorOf("a 1"), "trace 1:4: the number of bytes is missing");
  EXPECT_EQ(PlainTraceErrorOf("\n\n  f\n"), "trace 3:4: the id is missing");
  EXPECT_EQ(PlainTraceErrorOf("a 1 51x2 0"), "trace 1:5: the number of bytes must be a decimal number, not '51x2'");
  EXPECT_EQ(PlainTraceErrorOf("a -1 512 0"), "trace 1:3: the id must be a decimal number, not '-1'");
  EXPECT_EQ(PlainTraceErrorOf("a 18446744073709551616 512 0"), "trace 1:3: the id does not fit 64 bits");
  EXPECT_EQ(PlainTraceErrorOf("a 1 9223372036854775808 0"),
            "trace 1:5: the size is 2^63 or more; no device has that much");
  EXPECT_EQ(PlainTraceErrorOf("a 1 512 0 5 6"), "trace 1:13: unexpected '6' after the last field");
  EXPECT_EQ(PlainTraceErrorOf("y 1"), "trace 1:3: unexpected '1' after the last field");
}

TEST(PlainTraceTest, IdsMustLiveWhenTheyAreUsed) {
  EXPECT_EQ(PlainTraceErrorOf("f 4\n"),
            "trace 1:3: id 4 is freed but was never allocated; remove the line or add the allocation");
  EXPECT_EQ(PlainTraceErrorOf("r 4 1\n"),
            "trace 1:3: id 4 is recorded on a stream but was never allocated; remove the line or add the allocation");
  EXPECT_EQ(PlainTraceErrorOf("a 4 1 0\nf 4\nf 4\n"),
            "trace 3:3: id 4 is freed after it was freed; remove the line or add the allocation");
  EXPECT_EQ(PlainTraceErrorOf("a 4 1 0\na 4 1 0\n"),
            "trace 2:3: id 4 is allocated again while live; free it first or use a new id");
  EXPECT_EQ(PlainTraceErrorOf("a 99999999999 1 0\na 99999999999 1 0\n"),
            "trace 2:3: id 99999999999 is allocated again while live; free it first or use a new id");
}

TEST(PlainTraceTest, TheLargestNumbersFit) {
  const auto trace = ParsePlainTrace("a 18446744073709551615 9223372036854775807 18446744073709551615");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests[0].bytes, 9223372036854775807u);
  EXPECT_EQ(Handle(trace->requests[0].stream), 18446744073709551615u);
}

// A slow reading of the same grammar, by streams and ordered maps.
trace::RequestTrace SlowParse(const std::string& text) {
  trace::RequestTrace out;
  std::map<std::uint64_t, std::uint32_t> ids;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string letter;
    if (!(fields >> letter) || !absl::StrContains("afrye", letter)) continue;
    std::uint64_t id = 0, bytes = 0, stream = 0;
    if (letter == "a") fields >> id >> bytes >> stream;
    if (letter == "f") fields >> id;
    if (letter == "r") fields >> id >> stream;
    const bool has_id = letter != "y" && letter != "e";
    const std::uint32_t dense = has_id ? ids.try_emplace(id, static_cast<std::uint32_t>(ids.size())).first->second : 0;
    const OpKind kind = letter == "a"   ? OpKind::kAlloc
                        : letter == "f" ? OpKind::kFree
                        : letter == "r" ? OpKind::kRecordStream
                        : letter == "y" ? OpKind::kDeviceSync
                                        : OpKind::kEmptyCache;
    out.requests.push_back(Op{bytes, Stream{stream}, dense, kind});
  }
  out.id_count = static_cast<std::uint32_t>(ids.size());
  return out;
}

void ExpectSame(const trace::RequestTrace& got, const trace::RequestTrace& want) {
  EXPECT_EQ(got.id_count, want.id_count);
  ASSERT_EQ(got.requests.size(), want.requests.size());
  for (std::size_t i = 0; i < want.requests.size(); ++i) {
    ASSERT_EQ(got.requests[i].kind, want.requests[i].kind) << "op " << i;
    ASSERT_EQ(got.requests[i].id, want.requests[i].id) << "op " << i;
    ASSERT_EQ(got.requests[i].bytes, want.requests[i].bytes) << "op " << i;
    ASSERT_EQ(got.requests[i].stream, want.requests[i].stream) << "op " << i;
  }
}

// Ids of each width on purpose: table, hash map, and both in one file.
std::string RandomTrace(Rng& rng, std::uint64_t id_bound) {
  std::string text;
  std::vector<std::uint64_t> live;
  for (int op = 0; op < 500; ++op) {
    const std::uint64_t draw = rng.Below(10);
    if (draw < 5 || live.empty()) {
      const std::uint64_t id = rng.Below(id_bound);
      if (std::find(live.begin(), live.end(), id) != live.end()) continue;
      live.push_back(id);
      absl::StrAppend(&text, "a ", id, " ", rng.Next() >> 1, " ", rng.Next(), "\n");
    } else if (draw < 8) {
      const std::uint64_t at = rng.Below(live.size());
      absl::StrAppend(&text, "f ", live[at], "\n");
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      absl::StrAppend(&text, draw == 8 ? absl::StrCat("r ", live[0], " ", rng.Next()) : "y", "\n");
    }
  }
  return text;
}

TEST(PlainTraceTest, AgreesWithASlowReader) {
  Rng rng(1);
  for (std::uint64_t bound : {10u, 1000u, 100000u, 4000000000u}) {
    for (int round = 0; round < 20; ++round) {
      const std::string text = RandomTrace(rng, bound);
      const auto trace = ParsePlainTrace(text);
      ASSERT_TRUE(trace.ok()) << trace.status();
      ExpectSame(*trace, SlowParse(text));
    }
  }
}

TEST(PlainTraceTest, ReadsTheGoldenTraces) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  int read = 0;
  for (const char* folder : {"/golden/traces", "/golden-real/traces"}) {
    for (const auto& entry : std::filesystem::directory_iterator(*shared + folder)) {
      const auto text = ReadInput(entry.path().string());
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(Sniff(*text), InputKind::kPlainTrace);
      const auto trace = ParsePlainTrace(*text);
      ASSERT_TRUE(trace.ok()) << entry.path() << ": " << trace.status();
      ExpectSame(*trace, SlowParse(*text));
      ++read;
    }
  }
  EXPECT_GE(read, 41);
}

TEST(PlainTraceTest, AnyPrefixGivesAnAnswer) {
  const std::string text = "S 1 2 3\na 12 512 0 77\nr 12 3\n# c\nf 12\ny\ne\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const auto trace = ParsePlainTrace(absl::string_view(text).substr(0, size));
    EXPECT_TRUE(trace.ok() || absl::StartsWith(trace.status().message(), "trace ")) << trace.status();
  }
}

}  // namespace
}  // namespace ashlar::formats
