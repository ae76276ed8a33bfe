// What is printed of who holds the live blocks, by name.
#include "commands/shared/held_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::answers {
namespace {

using analyses::HeldByName;
using analyses::HeldRow;
using testing::HasSubstr;

trace::Holder HolderNamed(const std::string& kind, const std::string& name) {
  trace::Holder out;
  out.kind = kind;
  out.name = name;
  return out;
}

TEST(HeldTextTest, WithoutNamesThereIsNoPart) {
  std::string text;
  report::AppendHeld(std::nullopt, text);
  EXPECT_EQ(text, "");
}

TEST(HeldTextTest, GrowthIsSaidFromItsFirstStepOn) {
  EXPECT_EQ(report::GrowthText(analyses::HolderGrowth{2, 4, kMiB}), ", 1.00 MiB a step since step 2");
  EXPECT_EQ(report::GrowthText(std::nullopt), "");
}

TEST(HeldTextTest, AHolderReadsAsAPersonWouldSayIt) {
  trace::Holder holder = HolderNamed("graph", "losses[]");
  holder.file = "/home/me/train.py";
  EXPECT_EQ(report::HolderText(holder), "losses[] (its graph) in train.py");
  holder.nodes = 5516;
  holder.line = 31;
  holder.function = "train";
  EXPECT_EQ(report::HolderText(holder), "losses[] (graph of 5,516 nodes) in train.py:31 train");
  holder.kind = "traceback";
  holder.variables = {"logits", "x"};
  EXPECT_EQ(report::HolderText(holder), "losses[] (frames of its error: logits, x) in train.py:31 train");
  holder.variables.clear();
  holder.kind = "not_found";
  holder.name = "not\x1b found";
  EXPECT_EQ(report::HolderText(holder), "not? found, allocated at train.py:31 train");
}

TEST(HeldTextTest, TheTextSaysWhatIsLeftOutAndWhatIsMissing) {
  HeldByName held;
  held.when = "the out-of-memory error";
  held.bound = "time";
  for (int i = 0; i < 12; ++i) {
    HeldRow row;
    row.holder = HolderNamed("local", absl::StrCat("v", i));
    row.bytes = kMiB;
    row.blocks = 1;
    held.rows.push_back(row);
    held.live_bytes += kMiB;
    held.named_bytes += kMiB;
  }
  std::string text;
  report::AppendHeld(held, text);
  EXPECT_THAT(
      text, HasSubstr("WHO HOLDS IT   (by its name in the program, at the out-of-memory error; 100.0 % of 12.00 MiB)"));
  EXPECT_THAT(text, HasSubstr("4.00 MiB  in      4 blocks  4 more names"));
  EXPECT_THAT(text, HasSubstr("met its bound of time"));
}

}  // namespace
}  // namespace ashlar::answers
