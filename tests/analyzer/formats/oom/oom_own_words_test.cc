// Texts of programs that no row of the table knows. The names in them are made up.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "analyzer/formats/oom/oom_message.h"

namespace ashlar::formats {
namespace {

struct OwnWords {
  const char* text;
  std::uint64_t tried;  // 0: not told
  int device;           // -1: not told
};

constexpr OwnWords kTexts[] = {
    {"CUDA error 2 at lattice.cu:12: out of memory", 0, -1},
    {"Error: out of memory at lattice.cu(42)", 0, -1},
    {"plasma3d: GPU 3 out of memory while allocating 512 MB", 536'870'912, 3},
    {"[ERROR] cuMemAlloc returned 2 (CUDA_ERROR_OUT_OF_MEMORY)", 0, -1},
    {"Failed to allocate 1073741824 bytes on device 1: out of memory", 1'073'741'824, 1},
    {"mesh::DeviceError: the arena is full (cudaErrorMemoryAllocation)", 0, -1},
    {"step 12\nhipMalloc of the halo: Out of memory\nstep 13", 0, -1},
};

TEST(OomOwnWordsTest, ALineThatNamesMemoryAndADeviceIsRead) {
  for (const OwnWords& wanted : kTexts) {
    SCOPED_TRACE(wanted.text);
    ASSERT_TRUE(FindOomMessages(wanted.text).empty());
    const std::optional<OomMessage> message = FindInOwnWords(wanted.text);
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->family, "own-words");
    EXPECT_EQ(message->tried.has_value() ? message->tried->MiddleBytes() : 0, wanted.tried);
    EXPECT_EQ(message->device.value_or(-1), wanted.device);
    ASSERT_NE(message->FindNote("own_words"), nullptr);
  }
}

TEST(OomOwnWordsTest, TheTracebackBeforeItIsTaken) {
  const std::optional<OomMessage> message = FindInOwnWords(
      "Traceback (most recent call last):\n  File \"/w/solve.py\", line 9, in step\n    lattice.run(x)\n"
      "lattice.DeviceError: the GPU is out of memory\n");
  ASSERT_TRUE(message.has_value());
  ASSERT_FALSE(message->traceback.empty());
  EXPECT_EQ(message->traceback.back().frame.line, 9);
}

TEST(OomOwnWordsTest, CodeProseAndOtherMemoryAreNone) {
  for (const char* text : {"throw DeviceError(\"the GPU is out of memory\");", "// the device is out of memory",
                           "an OutOfMemoryError came up", "if err == `cudaErrorMemoryAllocation`:",
                           "java.lang.OutOfMemoryError: Java heap space", "the relationship ran out of memory",
                           "--- a/x.cc\n+++ b/x.cc\n@@ -1,1 +1,2 @@\n+GPU out of memory\n"}) {
    EXPECT_FALSE(FindInOwnWords(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace ashlar::formats
