#include "analyzer/formats/rmm/rmm_log.h"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "analyzer/formats/rmm/rmm_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::formats {
namespace {

using testing::HasSubstr;
using trace::OpKind;

constexpr char kHeader[] = "Thread,Time,Action,Pointer,Size,Stream\n";

// "a0 512@7 f0": kind, id, bytes and stream of each request.
std::string InWords(const trace::RequestTrace& trace) {
  std::string out;
  for (const trace::Op& op : trace.requests) {
    out += (out.empty() ? "" : " ") + std::string(op.kind == OpKind::kAlloc ? "a" : "f") + std::to_string(op.id);
    if (op.kind == OpKind::kAlloc) out += " " + std::to_string(op.bytes) + "@" + std::to_string(Handle(op.stream));
  }
  return out;
}

std::string Read(const std::string& rows) {
  const auto trace = ReadRmmLog(kHeader + rows);
  return trace.ok() ? InWords(*trace) + " | " + trace->source : std::string(trace.status().message());
}

TEST(RmmLogTest, RequestsInTheirOrder) {
  EXPECT_EQ(Read("9,14:05:02.123456,allocate,0x7f0a00000000,512,0x1c\n"
                 "8,14:05:02.123457,allocate,0x7f0a00000200,1000,0\n"
                 "9,14:05:02.123458,free,0x7f0a00000000,512,0x1c\n"
                 "9,23:59:59.999999,allocate,0x7f0a00000000,1,0x2\n"
                 "9,00:00:00.000000,free,0x7f0a00000200,1000,0\n"),
            "a0 512@28 a1 1000@0 f0 a2 1@2 f1 | RMM log");
}

// The time of day is not read: older releases print it otherwise.
TEST(RmmLogTest, ColumnsByName) {
  const auto trace = ReadRmmLog("Action,Size,Pointer,Device\r\nallocate,64,7f00,1\r\nfree,64,0x7f00,1\r\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(InWords(*trace), "a0 64@0 f0");
}

TEST(RmmLogTest, WhatIsNoRequestIsCounted) {
  EXPECT_EQ(
      Read("1,t,allocate failure,(nil),17179869184,0\n"
           "1,t,allocate,(nil),0,0\n"
           "1,t,free,(nil),0,0\n"
           "1,t,free,0x100,8,0\n"
           "1,t,free,0x200,8,0\n"
           "1,t,allocate,0x100,8,0\n"
           "1,t,allocate,0x100,16,0\n"
           "1,t,fr"),
      "a0 8@0 f0 a1 16@0 | RMM log (1 failed request left out, 1 request for 0 bytes left out, 2 frees of unknown "
      "pointers left out, 1 missing free added, 1 line that was cut off left out)");
}

TEST(RmmLogTest, FailuresAreToldInWords) {
  const auto failed = [](const std::string& rows) { return std::string(FailedInRmmLog(*ReadRmmLog(kHeader + rows))); };
  const std::string one = "1,t,allocate failure,(nil),8,0\n";
  EXPECT_EQ(failed(one), "1 failed request");
  EXPECT_EQ(failed(one + one + "1,t,allocate,0x1,0,0\n"), "2 failed requests");
  EXPECT_EQ(failed("1,t,allocate,0x1,0,0\n"), "");
  EXPECT_EQ(failed(""), "");
  EXPECT_EQ(FailedInRmmLog(trace::RequestTrace{}), "");
}

TEST(RmmLogTest, AFreeWithoutASizeFreesWhatIsLive) {
  EXPECT_EQ(Read("1,t,allocate,0x100,8,0\n1,t,free,0x100,0,0\n1,t,free,0x100,0,0\n"), "a0 8@0 f0 | RMM log");
}

TEST(RmmLogTest, ErrorsNameThePlace) {
  EXPECT_THAT(Read("1,t,realloc,0x1,8,0\n"), HasSubstr("RMM log 2:5: 'realloc' is none of allocate, free"));
  EXPECT_THAT(Read("1,t,free,0x1,8,0\n1,t,free,zz,8,0\n"), HasSubstr("RMM log 3:10: 'zz' is no pointer"));
  EXPECT_THAT(Read("1,t,free,0x1,-8,0\n"), HasSubstr("RMM log 2:14: '-8' is no number of bytes"));
  EXPECT_THAT(Read("1,t,free,0x1,9223372036854775808,0\n"), HasSubstr("is no number of bytes"));
  EXPECT_THAT(Read("1,t,free,0x1,8,s\n"), HasSubstr("RMM log 2:16: 's' is no stream"));
  EXPECT_THAT(Read("1,t,free,0x1,8\n"), HasSubstr("5 fields, the header has 6"));
  EXPECT_THAT(ReadRmmLog("a,b\n").status().message(), HasSubstr("no header line"));
}

TEST(RmmLogTest, IsToldByItsHeader) {
  EXPECT_TRUE(IsRmmLog(kHeader));
  EXPECT_TRUE(IsRmmLog("\n Thread, Time, Action, Pointer, Size, Stream"));
  EXPECT_FALSE(IsRmmLog("id,lower,upper,size\n"));
  EXPECT_FALSE(IsRmmLog(""));
}

// Every field of the writer's lines comes back, and they read as RMM prints them.
TEST(RmmLogTest, WhatIsWrittenIsReadBack) {
  std::string text;
  StringSink sink(&text);
  RmmLogWriter log(sink);
  constexpr std::int64_t kTime = ((14 * 60 + 5) * 60 + 2) * std::int64_t{1'000'000} + 42;
  log.Write({RmmAction::kAllocate, 0x7f0a00000000, 512, Stream{0x1c}, kTime});
  log.Write({RmmAction::kAllocateFailure, 0, std::uint64_t{1} << 50, Stream{}, kTime + 1});
  log.Write({RmmAction::kAllocate, 0x7f0a00000200, 77, Stream{}, kTime + std::int64_t{3} * 86'400'000'000});
  log.Write({RmmAction::kFree, 0x7f0a00000000, 512, Stream{0x1c}, -1});
  EXPECT_EQ(text, std::string(kHeader) +
                      "1,14:05:02.000042,allocate,0x7f0a00000000,512,0x1c\n"
                      "1,14:05:02.000043,allocate failure,(nil),1125899906842624,0\n"
                      "1,14:05:02.000042,allocate,0x7f0a00000200,77,0\n"
                      "1,23:59:59.999999,free,0x7f0a00000000,512,0x1c\n");
  const auto trace = ReadRmmLog(text);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(InWords(*trace), "a0 512@28 a1 77@0 f0");
  EXPECT_EQ(trace->source, "RMM log (1 failed request left out)");
}

TEST(RmmLogTest, CutsAndFlipsGiveATraceOrAPlace) {
  const std::string good =
      std::string(kHeader) + "1,14:05:02.1,allocate,0x7f00,512,0x1c\n1,14:05:02.2,free,0x7f00,512,0\n";
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    const auto trace = ReadRmmLog(good.substr(0, cut));
    EXPECT_TRUE(trace.ok() || absl::StrContains(trace.status().message(), "RMM log ")) << cut;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const auto trace = ReadRmmLog(bad);
      EXPECT_TRUE(trace.ok() || absl::StrContains(trace.status().message(), "RMM log ")) << at;
    }
  }
}

}  // namespace
}  // namespace ashlar::formats
