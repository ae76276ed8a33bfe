// A recording made through include/ashlar, read by ashlar/explain.h.
#include "ashlar/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "ashlar/devices.h"
#include "ashlar/explain.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

std::string FileOf(const std::string& name) {
  const std::string path = testing::TempDir() + "/face_" + name + ".ashlar";
  std::filesystem::remove(path);
  return path;
}

class ApiRecorderTest : public testing::Test {
 protected:
  void Use(std::uint64_t bytes) { kept_ = *allocator_.Allocate(bytes, Stream{0}); }
  ~ApiRecorderTest() override { allocator_.Free(kept_); }

  std::unique_ptr<Device> device_ = MakeSimulatedDevice({.capacity_bytes = kGiB});
  Allocator allocator_{device_.get()};
  Block kept_;
};

TEST_F(ApiRecorderTest, AFileSaysWhoHoldsTheMemory) {
  const std::string path = FileOf("file");
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::ToFile(allocator_, path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  {
    ASHLAR_SCOPE("forward");
    Use(300 * kMiB);
  }
  EXPECT_EQ((*recorder)->path(), path);
  EXPECT_GT((*recorder)->event_count(), 0u);
  EXPECT_TRUE((*recorder)->Flush().ok());
  EXPECT_TRUE((*recorder)->Finish().ok());
  EXPECT_TRUE((*recorder)->status().ok());
  const absl::StatusOr<std::string> text = ExplainFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("forward"));
}

TEST_F(ApiRecorderTest, ARingIsWrittenAnyTime) {
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Ring(
      allocator_, {.stack_of = [] { return std::vector<StackFrame>{{"model.cc", "Model::Forward", 42}}; }});
  ASSERT_TRUE(recorder.ok());
  Use(300 * kMiB);
  const std::string path = FileOf("ring");
  ASSERT_TRUE((*recorder)->Write(path).ok());
  EXPECT_THAT(*ExplainFile(path), HasSubstr("Model::Forward"));
}

TEST_F(ApiRecorderTest, ChunksThatNoMemoryHoldsAreRefused) {
  const std::string path = FileOf("huge");
  for (const std::size_t bytes : {std::size_t{1} << 40, SIZE_MAX}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Recorder::Ring(allocator_, {.chunk_bytes = bytes}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(Recorder::ToFile(allocator_, path, {.chunk_bytes = bytes}).status()));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(Recorder::Ring(allocator_, {.ring_bytes = UINT64_MAX, .chunk_bytes = 1}).ok()) << "none is left behind";
}

TEST_F(ApiRecorderTest, OneAtATime) {
  const auto first = Recorder::Ring(allocator_);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Recorder::Ring(allocator_).status()));
  EXPECT_FALSE(allocator_.ShowBlocksToSanitizer().ok());
}

TEST_F(ApiRecorderTest, WhatStackOfThrowsEndsTheRecordingAlone) {
  const auto recorder = Recorder::Ring(
      allocator_, {.stack_of = []() -> std::vector<StackFrame> { throw std::runtime_error("no unwinder"); }});
  ASSERT_TRUE(recorder.ok());
  Use(1000);
  EXPECT_TRUE(kept_);
  EXPECT_THAT(std::string((*recorder)->status().message()), HasSubstr("no unwinder"));
}

TEST_F(ApiRecorderTest, ASnapshotSaysWhoHoldsTheMemory) {
  const auto recorder = Recorder::Ring(allocator_);
  const std::string path = FileOf("snapshot");
  {
    const Scope scope("backward");
    Use(300 * kMiB);
  }
  ASSERT_TRUE(allocator_.DumpSnapshot(path).ok());
  EXPECT_THAT(*ExplainFile(path), HasSubstr("backward"));
}

}  // namespace
}  // namespace ashlar
