#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "allocator/policy/options.h"

namespace ashlar::policy {
namespace {

using testing::HasSubstr;

absl::StatusOr<Options> Changed(const std::string& from, const std::string& to) {
  return ChangedSettings(*ParseConf(from, Compat::kTorch210, Keys::kAshlar), to);
}

TEST(ChangedSettingsTest, WhatDecidesRequestsToComeMayChange) {
  const absl::StatusOr<Options> changed =
      Changed("max_split_size_mb:64,search_after_sync:True",
              "roundup_power2_divisions:4,garbage_collection_threshold:0.5,large_segment_size_mb:32,"
              "borrow_across_streams:True,borrow_most_waits:7,sync_just_enough:True");
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->max_split_size_bytes, kUnlimited) << "a key that is not named has its default";
  EXPECT_FALSE(changed->search_after_sync);
  EXPECT_EQ(changed->roundup_power2_divisions[3], 4u);
  EXPECT_EQ(changed->garbage_collection_threshold, 0.5);
  EXPECT_EQ(changed->large_segment_bytes, 32 * kMiB);
  EXPECT_TRUE(changed->borrow_across_streams && changed->sync_just_enough);
  EXPECT_EQ(changed->borrow_most_waits, 7u);
  EXPECT_THAT(changed->conf, HasSubstr("large_segment_size_mb:32"));
}

TEST(ChangedSettingsTest, WhatShapesMemoryThatIsThereMayNot) {
  for (const std::string key :
       {"expandable_segments:True", "policy:ashlar", "free_order:per-segment-counter", "compat:torch-2.6",
        "memory_limit_mb:100", "per_process_memory_fraction:0.5", "throw_on_cudamalloc_oom:True"}) {
    const absl::StatusOr<Options> changed = Changed("", key);
    EXPECT_EQ(changed.status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(changed.status().message()), HasSubstr("cannot change while the allocator runs")) << key;
    EXPECT_TRUE(Changed(key, key + ",search_after_sync:True").ok()) << key;
  }
  EXPECT_FALSE(Changed("expandable_segments:True", "expandable_segments:True,large_segment_size_mb:32").ok())
      << "its pages have that size";
  EXPECT_THAT(std::string(Changed("", "max_split_mb:64").status().message()), HasSubstr("did you mean"));
}

// A program may have set more than its text says.
TEST(ChangedSettingsTest, WhatTheTextDoesNotSayStays) {
  Options options;
  options.expandable_segments = true;
  options.memory_limit_bytes = 7;
  const absl::StatusOr<Options> changed = ChangedSettings(options, "roundup_power2_divisions:2");
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed->expandable_segments);
  EXPECT_EQ(changed->memory_limit_bytes, 7u);
}

}  // namespace
}  // namespace ashlar::policy
