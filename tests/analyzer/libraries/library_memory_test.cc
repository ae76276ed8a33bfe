#include "analyzer/libraries/library_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/base/units.h"

namespace ashlar::libraries {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr gpus::Capability kCardOf80{8, 0}, kCardOf90{9, 0};

std::vector<std::string> NamesOf(const std::vector<MemoryPart>& parts) {
  std::vector<std::string> out;
  for (const MemoryPart& part : parts) out.push_back(part.name);
  return out;
}

TEST(LibraryMemoryTest, OnlyLibrariesThatWereCalledHaveAPart) {
  EXPECT_THAT(LibraryParts({}, kCardOf90), IsEmpty());
  EXPECT_THAT(NamesOf(LibraryParts({.has_torch = true}, kCardOf90)), ElementsAre("kernels"));
  EXPECT_THAT(
      NamesOf(LibraryParts({.cublas_handles = 1, .has_cudnn = true, .nccl = {.communicators = {{}}}}, kCardOf80)),
      ElementsAre("cuBLAS", "cuDNN", "NCCL"));
}

TEST(LibraryMemoryTest, AHandleOfCublasTakesWhatItWasSeenToTakeOnAnH200) {
  const std::vector<MemoryPart> there = LibraryParts({.cublas_handles = 2}, kCardOf90);
  EXPECT_EQ(there[0].bytes.least_bytes, 2 * 66 * kMiB);
  EXPECT_EQ(there[0].bytes.most_bytes, 2 * 66 * kMiB);
  EXPECT_EQ(there[0].mark, "computed");
  EXPECT_THAT(there[0].source, HasSubstr("2 handles of 66 MiB"));
}

TEST(LibraryMemoryTest, CudnnTakesUpToTheLargestWorkspaceThatItNames) {
  CudnnUse use{.plans = 1200, .answered = 1199, .most_bytes = 30 * kMiB, .version = 92400};
  const MemoryPart part = LibraryParts({.has_cudnn = true, .cudnn = use}, kCardOf90)[0];
  EXPECT_EQ(part.bytes.least_bytes, 0U);
  EXPECT_EQ(part.bytes.most_bytes, 30 * kMiB);
  EXPECT_THAT(part.source, HasSubstr("1,199 of 1,200 plans, by the heuristics of cuDNN 9.24 without a device"));
  use = {.plans = 2, .why_not = "its library could not be loaded"};
  EXPECT_THAT(LibraryParts({.has_cudnn = true, .cudnn = use}, kCardOf90)[0].source,
              HasSubstr("it was not asked: its library could not be loaded"));
  EXPECT_EQ(LibraryParts({.has_cudnn = true}, kCardOf90)[0].mark, "assumed");
}

TEST(LibraryMemoryTest, WorkspacesInThePeakDoNotComeOnTop) {
  CudnnUse use{.plans = 12, .answered = 12, .most_bytes = 30 * kMiB, .version = 92400, .is_in_peak = true};
  MemoryPart part = LibraryParts({.has_cudnn = true, .cudnn = use}, kCardOf90)[0];
  EXPECT_EQ(part.bytes.most_bytes, 0U);
  EXPECT_EQ(part.source, "its workspaces are in the peak: its caller's memory");
  use.answered = 10;
  part = LibraryParts({.has_cudnn = true, .cudnn = use}, kCardOf90)[0];
  EXPECT_THAT(part.source, HasSubstr("but for 2 plans of no answer"));
}

TEST(LibraryMemoryTest, UsesOfProcessesAddUp) {
  CudnnUse all;
  all.Add({.plans = 2, .answered = 1, .most_bytes = 9, .version = 92400, .why_not = "first", .is_in_peak = true});
  all.Add({.plans = 3, .answered = 3, .most_bytes = 5, .version = 91900, .why_not = "second"});
  EXPECT_EQ(all.plans, 5U);
  EXPECT_EQ(all.answered, 4U);
  EXPECT_EQ(all.most_bytes, 9U);
  EXPECT_EQ(all.version, 92400U);
  EXPECT_EQ(all.why_not, "first");
  EXPECT_TRUE(all.is_in_peak);
  EXPECT_EQ(CudnnVersionText(8904), "8.9");
}

TEST(LibraryMemoryTest, ElsewhereItTakesItsWorkspaceAtLeast) {
  EXPECT_EQ(LibraryParts({.cublas_handles = 1}, kCardOf80)[0].bytes.least_bytes, 4 * kMiB);
  EXPECT_EQ(LibraryParts({.cublas_handles = 1}, {10, 0})[0].bytes.least_bytes, 32 * kMiB);
  EXPECT_EQ(LibraryParts({.cublas_handles = 1}, {12, 0})[0].bytes.least_bytes, 4 * kMiB);
}

}  // namespace
}  // namespace ashlar::libraries
