// The messages of our own allocator: made by it, and read again.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"
#include "analyzer/formats/oom/oom_message.h"
#include "ashlar/allocator.h"
#include "ashlar/devices.h"

namespace ashlar::formats {
namespace {

OomMessage OnlyMessage(const std::string& text) {
  const std::vector<OomMessage> found = FindOomMessages(text);
  EXPECT_EQ(found.size(), 1u) << text;
  return found.empty() ? OomMessage{} : found.front();
}

// 600 MiB live and 100 MiB cached within 1 GiB; 500 MiB more are asked for.
std::string FailureText() {
  const std::unique_ptr<Device> device = MakeSimulatedDevice({.capacity_bytes = kGiB});
  Allocator allocator(device.get(), *Options::Parse("report_leaks:False"));
  allocator.Allocate(300 * kMiB, Stream{0}).value();
  const Block freed = allocator.Allocate(100 * kMiB, Stream{0}).value();
  allocator.Allocate(300 * kMiB - 100, Stream{0}).value();
  allocator.Free(freed);
  return std::string(allocator.Allocate(500 * kMiB, Stream{0}).status().message());
}

TEST(OomMessageOursTest, FiguresOfTheWholeReportAreRead) {
  const std::string text = FailureText();
  const OomMessage message = OnlyMessage(text);
  EXPECT_EQ(message.family, "ashlar");
  EXPECT_FALSE(message.truncated);
  EXPECT_EQ(message.tried->printed, "500.00 MiB") << text;
  EXPECT_EQ(message.total->printed, "1.00 GiB");
  EXPECT_EQ(message.reserved->printed, "600.00 MiB");
  EXPECT_EQ(message.free->printed, "424.00 MiB");
  ASSERT_TRUE(message.allocated.has_value());
  EXPECT_LE(message.allocated->low_bytes, 600 * kMiB);
  EXPECT_GE(message.allocated->high_bytes, 600 * kMiB);
}

TEST(OomMessageOursTest, TheFirstLineIsEnough) {
  const core::FailedAllocation failed{.request_bytes = 3 * kMiB + 5,
                                      .rounded_bytes = 3 * kMiB + 512,
                                      .segment_bytes = 20 * kMiB,
                                      .device_free_bytes = 7 * kMiB,
                                      .device_total_bytes = 16 * kGiB,
                                      .is_rejected = true};
  const OomMessage message = OnlyMessage(core::OomMessage(failed, 15 * kGiB));
  EXPECT_EQ(message.tried->printed, "20.00 MiB");
  EXPECT_EQ(message.reserved->printed, "15.00 GiB");
  EXPECT_FALSE(message.allocated.has_value());
  ASSERT_EQ(message.details.size(), 1u);
  EXPECT_EQ(message.details[0].figure.printed, "3.00 MiB");
}

TEST(OomMessageOursTest, PyTorchsErrorNamesTheDevice) {
  const OomMessage message =
      OnlyMessage("Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n" +
                  std::string("torch.OutOfMemoryError: CUDA out of memory. GPU 3: ") + FailureText());
  EXPECT_EQ(message.family, "ashlar");
  EXPECT_EQ(message.device, 3);
  EXPECT_EQ(message.tried->printed, "500.00 MiB");
  ASSERT_EQ(message.traceback.size(), 1u);
}

TEST(OomMessageOursTest, ATextThatEndsInsideIsCut) {
  const OomMessage message = OnlyMessage("out of memory: 220.00 MiB requested (a segment of 220.00 MiB), device fr");
  EXPECT_TRUE(message.truncated);
  EXPECT_EQ(message.tried->printed, "220.00 MiB");
  EXPECT_FALSE(message.total.has_value());
}

TEST(OomMessageOursTest, ProseIsNoMessage) {
  EXPECT_TRUE(FindOomMessages("out of memory: please try again").empty());
  EXPECT_TRUE(FindOomMessages("error: out of memory: 12 workers").empty());
}

}  // namespace
}  // namespace ashlar::formats
