#include "commands/shared/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/explain/explain.h"

namespace ashlar::answers {
namespace {

using testing::HasSubstr;

constexpr char kRequests[] = "a 1 512 0\nf 1\n";
constexpr char kProblem[] = "id,lower,upper,size\nb1,0,3,4\n";
constexpr char kMessage[] =
    "RuntimeError: CUDA out of memory. Tried to allocate 2.69 GiB (GPU 0; 14.76 GiB total capacity; 12.32 GiB already "
    "allocated; 835.88 MiB free; 13.06 GiB reserved in total by PyTorch)";

std::string Refusal(const std::string& bytes, const InputRule& rule = {}) {
  return std::string(LoadInput(bytes, rule).status().message());
}

TEST(InputTest, EveryFormatOfATraceIsLoaded) {
  for (const std::string& bytes : {formats::WriteTorchSnapshot({}), trace::Encode({})}) {
    const absl::StatusOr<Input> input = LoadInput(bytes);
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_NE(input->snapshot(), nullptr);
    EXPECT_EQ(input->requests(), nullptr);
  }
  const absl::StatusOr<Input> requests = LoadInput(kRequests);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_NE(requests->requests(), nullptr);
  EXPECT_EQ(requests->requests()->requests.size(), 2U);
}

TEST(InputTest, ProblemsAndMessagesAreForThoseThatTakeThem) {
  EXPECT_EQ(Refusal(kProblem), "this is a packing problem (CSV), not a PyTorch memory snapshot or a request trace");
  EXPECT_NE(LoadInput(kProblem, {.problems = true})->problem(), nullptr);
  EXPECT_THAT(Refusal(kMessage), HasSubstr("this is an out-of-memory message, not"));
  const absl::StatusOr<Input> message = LoadInput(kMessage, ExplainedInputs());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->messages()->size(), 1U);
}

TEST(InputTest, WhatHoldsNothingIsRefusedByItsName) {
  EXPECT_THAT(Refusal(""), HasSubstr("this is an empty input"));
  EXPECT_THAT(Refusal("{\"a\": 1}", ExplainedInputs()), HasSubstr("this is JSON, not a PyTorch memory snapshot"));
  EXPECT_THAT(Refusal("hello"), HasSubstr("this is an unknown format"));
  EXPECT_THAT(Refusal(std::string(100, '\0'), ExplainedInputs()),
              HasSubstr("this is a binary file of no known format"));
}

TEST(InputTest, AByteOrderMarkChangesNothing) {
  const std::string marked = absl::StrCat("\xef\xbb\xbf", kMessage);
  EXPECT_EQ(LoadInput(marked, ExplainedInputs())->messages()->size(), 1U);
  std::string wide = "\xff\xfe";
  for (const char c : std::string(kMessage)) wide += {c, '\0'};
  EXPECT_EQ(LoadInput(wide, ExplainedInputs())->messages()->size(), 1U);
  wide.resize((65 << 20), ' ');
  EXPECT_THAT(Refusal(wide, ExplainedInputs()), HasSubstr("iconv"));
}

TEST(InputTest, WhetherTheRestFitsIsAskedBeforeTheInputIsRead) {
  formats::InputKind asked = formats::InputKind::kUnknown;
  InputRule rule;
  rule.fits = [&asked](formats::InputKind kind) {
    asked = kind;
    return absl::OutOfRangeError("a flag does not go with it");
  };
  EXPECT_EQ(Refusal("a 1 512 0\nnot a request\n", rule), "a flag does not go with it");
  EXPECT_EQ(asked, formats::InputKind::kPlainTrace);
}

}  // namespace
}  // namespace ashlar::answers
