#include "analyzer/formats/oom/oom_message.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/analyzer/formats/oom/messages.h"

namespace ashlar::formats {
namespace {

using namespace oom_messages;  // the texts under test

OomMessage One(const std::string& text) {
  const std::vector<OomMessage> found = FindOomMessages(text);
  EXPECT_EQ(found.size(), 1u) << text;
  return found.empty() ? OomMessage{} : found.front();
}

std::string Printed(const std::optional<Figure>& figure) { return figure ? figure->printed : "-"; }

bool HasNote(const OomMessage& message, const std::string& name) {
  for (const trace::Note& note : message.notes) {
    if (note.name == name) return true;
  }
  return false;
}

struct Expected {
  const char* text;
  const char* family;
  bool truncated;
  int device;  // -1: not told
  const char* tried;
  const char* total;
  const char* allocated;
  const char* free;
  const char* reserved;
  const char* unallocated;
  const char* private_pool;
  const char* limit;
  const char* details;  // "name=printed;..."
};

// Read off the texts by eye. "-" = not in this message.
const Expected kExpected[] = {
    {kTabularT4, "pt-reserved-hint", false, 0, "2.69 GiB", "14.76 GiB", "12.32 GiB", "835.88 MiB", "13.06 GiB", "-",
     "-", "-", ""},
    {kCutV100, "pt-reserved", true, 0, "220.00 MiB", "15.78 GiB", "13.16 GiB", "201.44 MiB", "14.44 GiB", "-", "-", "-",
     ""},
    {kColabBert, "pt-reserved", false, 0, "24.00 MiB", "7.43 GiB", "5.42 GiB", "8.94 MiB", "5.79 GiB", "-", "-", "-",
     ""},
    {kCached, "pt-cached", false, 0, "1024.00 KiB", "11.17 GiB", "10.90 GiB", "576.00 KiB", "10.90 GiB + 30.96 MiB",
     "30.96 MiB", "-", "-", ""},
    {kAllowed, "pt-reserved-allowed", false, 0, "37.25 GiB", "23.68 GiB", "192.29 MiB", "15.79 GiB", "5.05 GiB", "-",
     "-", "2.37 GiB", ""},
    {kTypo, "pt-capacty-typo", false, 0, "496.00 MiB", "14.75 GiB", "14.06 GiB", "235.06 MiB", "14.06 GiB + 330.42 MiB",
     "330.42 MiB", "-", "-", ""},
    {kNeighbours, "pt-capacity", false, 0, "86.00 MiB", "23.64 GiB", "7.63 GiB", "264.00 MiB", "7.63 GiB + 40.11 MiB",
     "40.11 MiB", "-", "-", ""},
    {kCommentWsl, "pt-capacity", false, 0, "3.74 GiB", "4.00 GiB", "16.20 GiB", "0 bytes", "16.20 GiB + 844.14 MiB",
     "844.14 MiB", "-", "-", ""},
    {kPrivatePools, "pt-capacity-private-pools", false, 1, "60.00 MiB", "79.19 GiB", "72.36 GiB", "39.06 MiB",
     "72.36 GiB + 71.59 MiB", "71.59 MiB", "436.00 MiB", "-", ""},
    {kCapacityAllowed, "pt-capacity-allowed", false, 0, "996.00 MiB", "44.43 GiB", "17.44 GiB", "9.06 GiB",
     "17.44 GiB + 59.88 MiB", "59.88 MiB", "-", "17.69 GiB", ""},
    {kRenamedConf, "pt-alloc-conf-renamed", false, 0, "112.00 MiB", "31.36 GiB", "30.35 GiB", "53.06 MiB",
     "30.35 GiB + 319.13 MiB", "319.13 MiB", "-", "-", ""},
    {kHip, "pt-hip", false, 0, "3.31 GiB", "128.00 GiB", "57.70 GiB", "780.24 MiB", "57.70 GiB + 75.82 MiB",
     "75.82 MiB", "-", "-", ""},
    {kXpu, "pt-xpu", false, 0, "32.00 GiB", "11.59 GiB", "0 bytes", "9.01 GiB", "0 bytes + 0 bytes", "0 bytes", "-",
     "-", ""},
    {kNpu, "pt-npu", false, 0, "22.00 MiB", "60.97 GiB", "10.24 GiB", "19.52 MiB", "10.65 GiB", "-", "-", "-", ""},
    {kMps, "pt-mps", false, -1, "129.21 MB", "-", "-", "-", "7.43 GB", "-", "-", "32.00 GB", ""},
    {kPlain, "pt-plain", false, -1, "-", "-", "-", "-", "-", "-", "-", "-", ""},
    {kRuntimeError, "pt-pre-1.0", false, -1, "-", "-", "-", "-", "-", "-", "-", "-", ""},
    {kBfcRounded, "tf-bfc", false, 0, "34.10MiB", "-", "-", "-", "-", "-", "-", "-", "rounded_to=35758080;"},
    {kBfcWarning, "tf-bfc", false, -1, "1.17GiB", "-", "-", "-", "-", "-", "-", "-", ""},
    {kBfcShape, "tf-bfc", false, 2, "shape[16,12,512,512] of float", "-", "-", "-", "-", "-", "-", "-", ""},
    {kBfcDevice, "tf-bfc", false, -1, "19104890880 bytes", "-", "-", "-", "-", "-", "-", "-", "printed=17.79G;"},
    {kJaxTable, "jax-xla", false, -1, "4770354232 bytes", "-", "-", "-", "-", "-", "-", "-",
     "parameter allocation=372.76MiB;constant allocation=48.5KiB;maybe_live_out allocation=9.64GiB;"
     "preallocated temp allocation=4.44GiB;total allocation=14.44GiB;total fragmentation=680.30MiB;"},
    {kJax, "jax-xla", false, -1, "20029400304 bytes", "-", "-", "-", "-", "-", "-", "-", ""},
    {kCupyOld, "cupy", false, -1, "1073741824 bytes", "-", "-", "-", "-", "-", "-", "-",
     "total_with_request=12373894656 bytes;"},
    {kCupyLimit, "cupy", false, -1, "761,856,000 bytes", "-", "-", "-", "6,104,426,496 bytes", "-", "-",
     "6,531,579,904 bytes", ""},
    {kCupyNoLimit, "cupy", false, -1, "285,296,072 bytes", "-", "-", "-", "7,381,975,040 bytes", "-", "-", "-", ""},
    {kRmm, "rmm", false, -1, "-", "-", "-", "-", "-", "-", "-", "-", ""},
    {kRmmPool, "rmm", false, -1, "-", "-", "-", "-", "-", "-", "-", "-", ""},
    {kPaddle, "paddle", false, 0, "3.621826GB", "21.184814GB + 2.814575GB", "-", "2.814575GB", "-", "-", "-", "-",
     "in_use_on_device=21.184814GB;"},
    {kGgml, "ggml", false, 0, "151851674624", "-", "-", "-", "-", "-", "-", "-", "printed=144817.04 MiB;"},
    {kNumba, "numba", false, -1, "-", "-", "-", "-", "-", "-", "-", "-", ""},
};

TEST(OomMessageTest, EveryFamilyReadsAsByEye) {
  static_assert(std::size(kExpected) == std::size(kAll));
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.text);
    const OomMessage message = One(expected.text);
    EXPECT_EQ(message.family, expected.family);
    EXPECT_EQ(message.truncated, expected.truncated);
    EXPECT_EQ(message.device.value_or(-1), expected.device);
    EXPECT_EQ(Printed(message.tried), expected.tried);
    EXPECT_EQ(Printed(message.total), expected.total);
    EXPECT_EQ(Printed(message.allocated), expected.allocated);
    EXPECT_EQ(Printed(message.free), expected.free);
    EXPECT_EQ(Printed(message.reserved), expected.reserved);
    EXPECT_EQ(Printed(message.unallocated_reserved), expected.unallocated);
    EXPECT_EQ(Printed(message.private_pool), expected.private_pool);
    EXPECT_EQ(Printed(message.limit), expected.limit);
    std::string details;
    for (const NamedFigure& detail : message.details) details += detail.name + "=" + detail.figure.printed + ";";
    EXPECT_EQ(details, expected.details);
  }
}

TEST(OomMessageTest, APrintedNumberIsAnInterval) {
  const OomMessage message = One(kTabularT4);
  const double gib = std::pow(2.0, 30);
  EXPECT_EQ(message.allocated->low_bytes, static_cast<std::uint64_t>(std::ceil(12.315 * gib)));
  EXPECT_EQ(message.allocated->high_bytes, static_cast<std::uint64_t>(std::floor(12.325 * gib)));
  EXPECT_EQ(message.free->low_bytes, static_cast<std::uint64_t>(std::ceil(835.875 * 1048576)));
  EXPECT_EQ(message.free->high_bytes, static_cast<std::uint64_t>(std::floor(835.885 * 1048576)));
  const OomMessage exact = One(kCupyLimit);
  EXPECT_EQ(exact.tried->low_bytes, 761856000u);
  EXPECT_EQ(exact.tried->high_bytes, 761856000u);
  const OomMessage zero = One(kXpu);
  EXPECT_EQ(zero.allocated->high_bytes, 0u);
}

TEST(OomMessageTest, EveryRoundingOfTheProgramLiesInTheInterval) {
  // 1.125 MiB prints as 1.12 (half to even): the end of the interval belongs to it.
  const OomMessage message = One("CUDA out of memory. Tried to allocate 1.12 MiB (GPU 0; 22.37 GiB total capacity)");
  EXPECT_EQ(message.tried->high_bytes, 1179648u);
}

TEST(OomMessageTest, ReservedIsTheSumOfItsParts) {
  const OomMessage message = One(kTypo);
  EXPECT_EQ(message.reserved->low_bytes, message.allocated->low_bytes + message.unallocated_reserved->low_bytes);
  EXPECT_EQ(message.reserved->high_bytes, message.allocated->high_bytes + message.unallocated_reserved->high_bytes);
}

TEST(OomMessageTest, ProcessesInTheOrderTold) {
  const OomMessage message = One(kNeighbours);
  ASSERT_EQ(message.processes.size(), 3u);
  EXPECT_EQ(message.processes[0].pid, 2086283);
  EXPECT_EQ(Printed(message.processes[0].used), "419.48 MiB");
  EXPECT_TRUE(message.processes[1].is_this_process);
  EXPECT_FALSE(message.processes[1].pid.has_value());
  EXPECT_EQ(Printed(message.processes[1].used), "8.04 GiB");
  EXPECT_EQ(message.processes[2].pid, 2797307);
  EXPECT_FALSE(message.processes[2].is_this_process);
}

TEST(OomMessageTest, WrappedCountersAreNamedAndLeftOut) {
  const OomMessage message = One(kCommentWsl);
  ASSERT_EQ(message.processes.size(), 2u);
  EXPECT_FALSE(message.processes[0].used.has_value());
  EXPECT_FALSE(message.processes[1].used.has_value());
  EXPECT_EQ(message.processes[1].pid, 74390);
  ASSERT_TRUE(HasNote(message, "impossible_figure"));
  EXPECT_EQ(message.notes.front().count, 2u);
  EXPECT_TRUE(HasNote(message, "reserved_over_total"));
  EXPECT_TRUE(HasNote(One(kCupyNoLimit), "no_limit"));
}

TEST(OomMessageTest, ContradictionsAreNamedAndLeftOut) {
  const OomMessage more_free =
      One("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 4.00 GiB total capacity; 1.00 GiB already allocated; "
          "5.00 GiB free; 2.00 GiB reserved in total by PyTorch)");
  EXPECT_FALSE(more_free.free.has_value());
  EXPECT_TRUE(HasNote(more_free, "impossible_figure"));
  const OomMessage more_allocated =
      One("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 4.00 GiB total capacity; 3.00 GiB already allocated; "
          "1.00 GiB free; 2.00 GiB reserved in total by PyTorch)");
  EXPECT_FALSE(more_allocated.reserved.has_value());
  EXPECT_TRUE(HasNote(more_allocated, "allocated_over_reserved"));
}

TEST(OomMessageTest, MpsCountsOtherAllocations) { EXPECT_EQ(Printed(One(kMps).other_in_use), "24.46 GB"); }

TEST(OomMessageTest, NpuTellsActive) { EXPECT_EQ(Printed(One(kNpu).active), "10.24 GiB"); }

TEST(OomMessageTest, AWarningIsNoFailure) { EXPECT_TRUE(HasNote(One(kBfcWarning), "not_a_failure")); }

TEST(OomMessageTest, SeveralInOneLogWithTheirOffsets) {
  std::string log = "2024-01-01 12:00:00 starting\n";
  std::vector<std::size_t> begins;
  for (const char* text : kAll) {
    log += "Traceback (most recent call last):\n  File \"train.py\", line 12, in <module>\n    loss.backward()\n";
    begins.push_back(log.size());
    log += text;
    log += "\n2024-01-01 12:00:01 retrying\n";
  }
  const std::vector<OomMessage> found = FindOomMessages(log);
  ASSERT_EQ(found.size(), std::size(kAll));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const OomMessage alone = One(kAll[i]);
    SCOPED_TRACE(kAll[i]);
    EXPECT_EQ(found[i].family, alone.family);
    EXPECT_EQ(found[i].byte_offset, begins[i] + alone.byte_offset);
    EXPECT_EQ(found[i].end_offset, begins[i] + alone.end_offset);
    EXPECT_EQ(found[i].truncated, alone.truncated);
    EXPECT_EQ(Printed(found[i].tried), Printed(alone.tried));
  }
}

TEST(OomMessageTest, InsideATraceback) {
  const OomMessage message = One(
      "Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    raise RuntimeError(\"CUDA out of "
      "memory in my code\")\n    attention_scores = attention_scores / math.sqrt(64)\n" +
      std::string(kColabBert) + "\n");
  EXPECT_EQ(Printed(message.reserved), "5.79 GiB");
}

TEST(OomMessageTest, ProseAndCodeAreNoMessages) {
  for (const char* text : {"", "memory", "if \"CUDA out of memory\" in str(error):",
                           "raise RuntimeError(\"CUDA out of memory. Tried to {}\")", "std::bad_alloc",
                           "terminate called: std::bad_alloc: no host memory", "I tried to allocate time",
                           "failed to allocate a port", "We ran out of memory. Sad.",
                           "bfc_allocator.cc:12] Chunk at 0x7f", "Tried to allocate 12 seats for 4 guests"}) {
    EXPECT_FALSE(LooksLikeOomMessage(text)) << text;
  }
  EXPECT_TRUE(LooksLikeOomMessage(kCached));
  EXPECT_TRUE(LooksLikeOomMessage("RuntimeError: CUDA out of memory."));
}

TEST(OomMessageTest, BrokenOverLinesAnywhere) {
  // A terminal breaks at any column; a break inside a number cannot be told from two numbers, so none is made there.
  const OomMessage whole = One(kNeighbours);
  const std::string text = kNeighbours;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) || text[at] == '.') continue;
    for (const char* gap : {"\n", "\r\n    ", "\n# ", "\n> "}) {
      const OomMessage broken = One(text.substr(0, at) + gap + text.substr(at));
      ASSERT_EQ(broken.family, whole.family) << at;
      ASSERT_EQ(broken.truncated, whole.truncated) << at;
      ASSERT_EQ(broken.processes.size(), 3u) << at;
      ASSERT_EQ(broken.tried->high_bytes, whole.tried->high_bytes) << at;
      ASSERT_EQ(broken.unallocated_reserved->low_bytes, whole.unallocated_reserved->low_bytes) << at;
    }
  }
}

TEST(OomMessageTest, EscapedAndColoured) {
  const OomMessage escaped =
      One("\"error\": \"CUDA out of memory. Tried to allocate 2.50 GiB.\\nGPU 0 has a total capacity "
          "of 15.78 GiB of which 1.23 GiB is free.\\n\"");
  EXPECT_EQ(Printed(escaped.free), "1.23 GiB");
  const OomMessage coloured =
      One("\x1b[31mCUDA out of memory.\x1b[0m Tried to allocate \x1b[1m2.50 GiB\x1b[0m. GPU 3 has a "
          "total capacity of 15.78 GiB of which 1.23 GiB is free.");
  EXPECT_EQ(coloured.device, 3);
  EXPECT_EQ(coloured.tried->low_bytes, escaped.tried->low_bytes);
}

TEST(OomMessageTest, ElidedPartsStayUnknown) {
  const OomMessage message = One(
      "CUDA out of memory during sampling ... Tried to allocate 74.00 MiB. GPU 0 has a total capacity of 15.47 GiB of "
      "which "
      "117.69 MiB is free ... this process has 13.7x GiB ... and 12.00 MiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(Printed(message.tried), "74.00 MiB");
  EXPECT_EQ(Printed(message.unallocated_reserved), "12.00 MiB");
  EXPECT_FALSE(message.allocated.has_value());
  EXPECT_FALSE(message.reserved.has_value());
  EXPECT_TRUE(message.truncated);
}

}  // namespace
}  // namespace ashlar::formats
