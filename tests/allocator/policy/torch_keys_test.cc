// Values of PyTorch's keys: what is read where a text is odd, and what is refused of keys that change no decision here.
// torch_answers_test.cc holds all of it to PyTorch.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "allocator/policy/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

Options Read(const std::string& conf, Compat compat) {
  const absl::StatusOr<Options> options = ParseConf(conf, compat);
  EXPECT_TRUE(options.ok()) << conf << ": " << options.status();
  return options.value_or(Options{});
}

// PyTorch takes the number at the front, and a minus wraps around; who wrote it is told.
TEST(TorchKeysTest, ANumberIsWhatPyTorchReads) {
  const Options options = Read("max_split_size_mb:128MB", Compat::kTorchLatest);
  EXPECT_EQ(options.max_split_size_bytes, 128 * kMiB);
  EXPECT_THAT(options.notes, testing::ElementsAre("max_split_size_mb: '128MB' is read as 128, as PyTorch reads it"));
  EXPECT_GT(Read("max_split_size_mb:-1", Compat::kTorch210).max_split_size_bytes, std::uint64_t{1} << 63);
  EXPECT_EQ(Read("max_split_size_mb:21.9", Compat::kTorch26).max_split_size_bytes, 21 * kMiB);
  EXPECT_DOUBLE_EQ(Read("garbage_collection_threshold:0.8f", Compat::kTorch210).garbage_collection_threshold, 0.8);
  EXPECT_THAT(Read("garbage_collection_threshold:0.80,max_split_size_mb:64", Compat::kTorch210).notes,
              testing::IsEmpty());
}

TEST(TorchKeysTest, KeysWithoutEffectHavePyTorchsValues) {
  for (const char* conf : {"release_lock_on_cudamalloc:1", "pinned_num_register_threads:3", "pinned_free_catch_all:yes",
                           "pinned_num_register_threads:256", "pinned_reserve_segment_size_mb:0",
                           "pinned_max_cached_size_mb:x", "graph_capture_record_stream_reuse:true"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseConf(conf, Compat::kTorchLatest).status())) << conf;
  }
}

}  // namespace
}  // namespace ashlar::policy
