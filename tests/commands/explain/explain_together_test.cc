#include "commands/explain/explain_together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/formats/torch/torch_snapshot.h"

namespace ashlar::answers {
namespace {

constexpr std::uint64_t kFree = 81 * kMiB;

// One live block of 256 MiB, then a request of 100 MiB that failed with 81 MiB free.
std::string FailedRun() {
  trace::Snapshot snapshot;
  constexpr std::uint64_t kAt = std::uint64_t{1} << 40;
  snapshot.segments.push_back({0,
                               kAt,
                               256 * kMiB,
                               Stream{},
                               false,
                               false,
                               {},
                               trace::kNoStack,
                               {{kAt, 256 * kMiB, 256 * kMiB, trace::BlockState::kLive, trace::kNoStack}}});
  const auto event = [](trace::Action action, std::uint64_t address, std::uint64_t bytes) {
    trace::Event out;
    out.action = action;
    out.address = address;
    out.size_bytes = bytes;
    return out;
  };
  snapshot.device_traces = {{event(trace::Action::kSegmentAlloc, kAt, 256 * kMiB),
                             event(trace::Action::kAlloc, kAt, 256 * kMiB),
                             event(trace::Action::kOom, kFree, 100 * kMiB)}};
  return formats::WriteTorchSnapshot(snapshot);
}

std::string Message(const std::string& tried, const std::string& free, int device = 0) {
  return absl::StrCat("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ", tried, ". GPU ", device,
                      " has a total capacity of 1.00 GiB of which ", free,
                      " is free. Process 4711 has 300.00 MiB memory in use. Including non-PyTorch memory, this process "
                      "has 643.00 MiB memory in use. Of the allocated memory 256.00 MiB is allocated by PyTorch, and 0 "
                      "bytes is reserved by PyTorch but unallocated.\n");
}

NamedInput Named(const std::string& name, const std::string& bytes) {
  absl::StatusOr<Input> input = LoadInput(bytes, ExplainedInputs());
  EXPECT_TRUE(input.ok()) << input.status();
  return {name, *std::move(input)};
}

std::vector<Explanation> Explained(const std::string& log, const std::string& snapshot) {
  std::vector<NamedInput> inputs;
  inputs.push_back(Named("error.log", log));
  inputs.push_back(Named("snapshot.pickle", snapshot));
  const absl::StatusOr<std::vector<Explanation>> out = ExplainTogether(inputs, {});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.value_or(std::vector<Explanation>{});
}

const trace::Note* NoteOf(const Explanation& explanation, const std::string& name) {
  for (const trace::Note& note : explanation.notes) {
    if (note.name == name) return &note;
  }
  return nullptr;
}

TEST(ExplainTogetherTest, AMessageAndItsSnapshotMakeOneAnswer) {
  const std::vector<Explanation> both = Explained(Message("100.00 MiB", "81.00 MiB"), FailedRun());
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].accounting.total_bytes, kGiB);  // the snapshot alone does not know it
  EXPECT_EQ(both[0].accounting.free_bytes, kFree);
  EXPECT_EQ(both[0].accounting.outside_bytes, kGiB - kFree - 256 * kMiB);
  EXPECT_THAT(both[0].source, testing::HasSubstr("the message of this failure (pt-capacity) in error.log"));
  ASSERT_NE(NoteOf(both[0], "told_by_message"), nullptr);
  EXPECT_THAT(NoteOf(both[0], "told_by_message")->message, testing::HasSubstr("process 4711 has 300.00 MiB in use"));
  ASSERT_NE(NoteOf(both[0], "non_pytorch_memory"), nullptr);
  EXPECT_THAT(NoteOf(both[0], "non_pytorch_memory")->message, testing::HasSubstr("387.00 MiB"));  // 643 - 256
}

TEST(ExplainTogetherTest, TheSameFailureSeveralTimesInTheLogIsStillOne) {
  const std::string once = Message("100.00 MiB", "81.00 MiB");
  EXPECT_EQ(Explained(once + "retry\n" + once, FailedRun()).size(), 1u);
  EXPECT_EQ(Explained(Message("2.00 GiB", "81.00 MiB") + once, FailedRun()).size(), 2u);  // the other one stays
}

TEST(ExplainTogetherTest, WhatDoesNotBelongTogetherIsAnsweredTwiceWithANote) {
  for (const std::string& log : {Message("200.00 MiB", "81.00 MiB"), Message("100.00 MiB", "82.00 MiB"),
                                 Message("100.00 MiB", "81.00 MiB", 1)}) {
    const std::vector<Explanation> two = Explained(log, FailedRun());
    ASSERT_EQ(two.size(), 2u) << log;
    const trace::Note* note = NoteOf(two[1], "another_failure");
    ASSERT_NE(note, nullptr);
    EXPECT_THAT(note->message, testing::HasSubstr("the snapshot's last failure is of 100.00 MiB on device 0"));
    EXPECT_EQ(two[1].accounting.total_bytes, std::nullopt);
  }
}

TEST(ExplainTogetherTest, ASnapshotWithoutAFailureSaysSo) {
  const std::vector<Explanation> two =
      Explained(Message("100.00 MiB", "81.00 MiB"), formats::WriteTorchSnapshot(trace::Snapshot{}));
  ASSERT_EQ(two.size(), 2u);
  ASSERT_NE(NoteOf(two[1], "another_failure"), nullptr);
  EXPECT_THAT(NoteOf(two[1], "another_failure")->message, testing::HasSubstr("holds no failed request"));
}

TEST(ExplainTogetherTest, TextInUtf16IsRead) {
  std::string utf16 = "\xff\xfe";
  for (const char c : Message("100.00 MiB", "81.00 MiB")) (utf16 += c) += '\0';
  EXPECT_EQ(Explained(utf16, FailedRun()).size(), 1u);
}

TEST(ExplainTogetherTest, ARefusalDoesNotContradictItself) {
  const absl::StatusOr<Input> refused = LoadInput("an OutOfMemoryError came up", ExplainedInputs());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("holds no message of it"));
  EXPECT_THAT(std::string(refused.status().message()),
              testing::Not(testing::HasSubstr("this is an out-of-memory message")));
}

}  // namespace
}  // namespace ashlar::answers
