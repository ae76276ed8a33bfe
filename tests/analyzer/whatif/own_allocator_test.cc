// What is offered where no setting of the recorded allocator helps, and when nothing is.
#include "analyzer/whatif/own_allocator.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using testing::HasSubstr;
using tests::RequestList;
using tests::Stranding;

constexpr std::uint64_t kCapacity = tests::kStrandingCapacity;

struct Answer {
  Advice advice;
  std::optional<OwnAllocator> own;
};

Answer Try(const trace::RequestTrace& requests, const std::string& conf, std::uint64_t capacity_bytes,
           bool is_pytorch = true) {
  WhatIfSettings settings;
  settings.baseline = *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
  settings.capacity_bytes = capacity_bytes;
  const absl::StatusOr<std::vector<WhatIfRow>> rows = RunWhatIfs(requests, settings);
  EXPECT_TRUE(rows.ok()) << rows.status();
  Answer out{.advice = Advise(*rows), .own = std::nullopt};
  absl::StatusOr<std::optional<OwnAllocator>> own =
      TryOwnAllocator(requests, settings, nullptr, {*rows, out.advice, is_pytorch});
  EXPECT_TRUE(own.ok()) << own.status();
  out.own = *std::move(own);
  return out;
}

TEST(OwnAllocatorTest, ServesWhatNoSettingDoes) {
  const Answer answer = Try(Stranding(), "", kCapacity);
  EXPECT_EQ(answer.advice.paste, std::nullopt) << *answer.advice.paste;
  ASSERT_TRUE(answer.own.has_value());
  EXPECT_EQ(answer.own->row.ooms, 0u);
  EXPECT_LE(answer.own->row.peak_reserved_bytes, kCapacity);
  EXPECT_EQ(answer.own->run, "ASHLAR_CONF=policy:ashlar python -m ashlar_gpu.torch YOUR_PROGRAM.py");
  EXPECT_THAT(answer.own->sentence, HasSubstr("Ashlar's own allocator with policy:ashlar would have fitted"));
}

// Our plug-in takes PyTorch's variables over, so that they must not say what is not wanted.
TEST(OwnAllocatorTest, RecordedSettingsAreTakenAwayAndTheRestIsKept) {
  const Answer answer = Try(Stranding(), "max_split_size_mb:64,pinned_use_background_threads:True", kCapacity);
  ASSERT_TRUE(answer.own.has_value());
  EXPECT_EQ(answer.own->run,
            "env -u PYTORCH_CUDA_ALLOC_CONF -u PYTORCH_ALLOC_CONF "
            "ASHLAR_CONF=policy:ashlar,pinned_use_background_threads:True python -m ashlar_gpu.torch YOUR_PROGRAM.py");
}

TEST(OwnAllocatorTest, AProgramThatHasItGetsTheSettingAlone) {
  const Answer answer = Try(Stranding(), "", kCapacity, /*is_pytorch=*/false);
  ASSERT_TRUE(answer.own.has_value());
  EXPECT_EQ(answer.own->run, "export ASHLAR_CONF=policy:ashlar");
}

// 180 MiB live and 500 are more than the device has.
TEST(OwnAllocatorTest, WhatNothingServesIsShownAndNotPromised) {
  const Answer answer = Try(Stranding(500 * kMiB), "", kCapacity);
  ASSERT_TRUE(answer.own.has_value());
  EXPECT_EQ(answer.own->row.ooms, 1u);
  EXPECT_EQ(answer.own->run, std::nullopt);
  EXPECT_EQ(answer.own->sentence, "");
}

TEST(OwnAllocatorTest, IsNotAskedForWhereNothingFailsOrASettingMendsIt) {
  EXPECT_FALSE(Try(Stranding(), "", 80 * kGiB).own.has_value());
  // Expandable segments mend this one: whole pages are free.
  RequestList whole;
  for (int round = 0; round < 4; ++round) {
    const std::uint32_t big = whole.Allocate(100 * kMiB);
    whole.Free(big);
    whole.Allocate(12 * kMiB);
  }
  whole.Allocate(100 * kMiB);
  const Answer mended = Try(whole.trace(), "", 170 * kMiB);
  EXPECT_TRUE(mended.advice.paste.has_value());
  EXPECT_FALSE(mended.own.has_value());
}

TEST(OwnAllocatorTest, ItsOwnRunsAreNotTriedAgain) {
  EXPECT_FALSE(Try(Stranding(500 * kMiB), "policy:ashlar", kCapacity).own.has_value());
}

}  // namespace
}  // namespace ashlar::whatif
