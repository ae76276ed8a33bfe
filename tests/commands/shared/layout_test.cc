// Width, cut labels and Markdown.
#include "commands/shared/layout.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "analyzer/formats/oom/oom_message.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/formats/oom/messages.h"

namespace ashlar::report {
namespace {

using testing::HasSubstr;
using testing::Not;

class LayoutTest : public testing::Test {
 protected:
  void TearDown() override { SetTextWidth(std::nullopt); }

  static std::size_t ShownColumns(const std::string& line) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    return columns;
  }
};

std::vector<answers::Explanation> ExplainedText(const std::string& text) {
  return answers::ExplainMessages(formats::FindOomMessages(text), {});
}

TEST_F(LayoutTest, TheWidthIsClampedAndGoesBack) {
  EXPECT_EQ(TextWidth(), kTextWidth);
  SetTextWidth(20);
  EXPECT_EQ(TextWidth(), 60u);
  SetTextWidth(1000);
  EXPECT_EQ(TextWidth(), 200u);
  SetTextWidth(std::nullopt);
  EXPECT_EQ(TextWidth(), kTextWidth);
  EXPECT_EQ(LabelRoom(32, 90), 90u);
}

// The first form in which all rows fit; the last is cut at a word. Without a terminal the fullest.
TEST_F(LayoutTest, ARowLosesColumnsAndIsNeverBroken) {
  const std::string wide(70, 'x');
  const std::vector<RowTexts> forms = {{wide + " 12 calls", "short  "}, {wide, "s"}, {"the row without columns", "s"}};
  const auto rows = [&forms] {
    std::string out;
    AppendRows(forms, out);
    return out;
  };
  EXPECT_EQ(rows(), wide + " 12 calls\nshort\n");
  SetTextWidth(79);
  EXPECT_EQ(rows(), wide + " 12 calls\nshort\n");
  SetTextWidth(78);
  EXPECT_EQ(rows(), wide + "\ns\n");
  SetTextWidth(60);
  EXPECT_EQ(rows(), "the row without columns\ns\n");
  std::string cut;
  AppendRows({{"a row of " + std::string(30, 'y') + " " + std::string(30, 'z')}}, cut);
  EXPECT_EQ(cut, "a row of " + std::string(30, 'y') + " ...\n");
}

TEST_F(LayoutTest, NoLineIsWiderThanTheTerminal) {
  for (const std::size_t width : {60u, 80u, 120u, 200u}) {
    SetTextWidth(width);
    const std::vector<answers::Explanation> explained = ExplainedText(oom_messages::kNeighbours);
    const std::string text = PrintExplanations(explained, /*as_json=*/false);
    for (const absl::string_view part : absl::StrSplit(text, '\n')) {
      const std::string line(part);
      if (line.find("torch.cuda.memory.") != std::string::npos) continue;  // to paste: stays whole
      EXPECT_LE(ShownColumns(line), width) << line;
    }
    EXPECT_THAT(text, HasSubstr("    torch.cuda.memory._record_memory_history(max_entries=100000)\n"));
  }
}

TEST_F(LayoutTest, NothingIsBrokenWithoutATerminal) {
  const std::string text = "  " + std::string(150, 'x') + " y\nPASTE  z\n";
  EXPECT_EQ(Fitted(text, {}), text);
  SetTextWidth(60);
  EXPECT_EQ(Fitted(text, {}), "  " + std::string(150, 'x') + "\n      y\nPASTE  z\n");
}

TEST_F(LayoutTest, SentencesLoseWholeWords) {
  EXPECT_EQ(ShortenedSentence("obtained 2.90 GiB in all", 24), "obtained 2.90 GiB in all");
  for (std::size_t width = 13; width < 17; ++width) {
    EXPECT_EQ(ShortenedSentence("obtained 2.90 GiB in all", width), "obtained ...") << width;
  }
  EXPECT_EQ(ShortenedSentence("obtained 2.90 GiB in all", 17), "obtained 2.90 ...");
  EXPECT_EQ(ShortenedSentence(std::string(30, 'x'), 10), "xxxxxxx...");
}

TEST_F(LayoutTest, LabelsLoseTheirMiddle) {
  EXPECT_EQ(MiddleCut("model.py:56 mlp", 15), "model.py:56 mlp");
  EXPECT_EQ(MiddleCut("a_very_long_name_of_a_file.py:123 forward", 23), "a_very_lon...23 forward");
  const std::string cut = MiddleCut("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", 12);
  EXPECT_LE(cut.size(), 12u);
  EXPECT_THAT(cut, HasSubstr("..."));
}

TEST_F(LayoutTest, MarkdownEscapesWhatItWouldRead) {
  EXPECT_EQ(MarkdownText("a|b <c> `d` *e*\n"), "a\\|b \\<c\\> \\`d\\` \\*e\\*?");
  std::vector<answers::Explanation> explained = ExplainedText(oom_messages::kNeighbours);
  ASSERT_EQ(explained.size(), 1u);
  explained[0].memory.holders.stacks.push_back({"<lambda> a|b.py:3", 1 << 20, 2});
  explained[0].what_ifs.advice.paste = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  const std::string text = ToMarkdown(explained);
  EXPECT_THAT(text, HasSubstr("| 1.00 MiB | 2 | \\<lambda\\> a\\|b.py:3 |\n"));
  EXPECT_THAT(text, HasSubstr("```\nexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n```\n"));
  EXPECT_THAT(text, HasSubstr("### OUT OF MEMORY"));
  EXPECT_THAT(text, Not(HasSubstr("****")));
}

TEST_F(LayoutTest, TheTracebackNamesTheProgramsOwnLines) {
  const std::string log =
      "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 23, in <module>\n    main()\n"
      "  File \"/v/site-packages/torch/nn/modules/module.py\", line 1783, in _call_impl\n    return f(*args)\n"
      "  File \"/home/u/model.py\", line 6, in forward\n    h = self.up(x)\n        ^^^^^^^^^^\n"
      "  File \"/v/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n    return F.linear(x)\n";
  const std::vector<answers::Explanation> explained = ExplainedText(log + oom_messages::kNeighbours);
  ASSERT_EQ(explained.size(), 1u);
  ASSERT_TRUE(explained[0].failure.raised_at.has_value());
  EXPECT_EQ(explained[0].failure.raised_at->line, "model.py:6 forward");
  EXPECT_EQ(explained[0].failure.raised_at->code, "h = self.up(x)");
  EXPECT_THAT(explained[0].failure.raised_at->path, testing::ElementsAre("train.py:23 <module>", "model.py:6 forward"));
  EXPECT_THAT(PrintExplanations(explained, false), HasSubstr("train.py:23 <module> > model.py:6 forward"));
  // Far behind another error's traceback: not this message's.
  std::string far;
  for (int i = 0; i < 40; ++i) far += "step done\n";
  EXPECT_FALSE(
      ExplainedText(log + "ValueError: x\n" + far + oom_messages::kNeighbours)[0].failure.raised_at.has_value());
}

TEST_F(LayoutTest, RanksThatInterleaveAreToldApart) {
  const std::string log =
      "[rank1]: Traceback (most recent call last):\n[rank0]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/home/u/one.py\", line 1, in f\n[rank0]:   File \"/home/u/zero.py\", line 2, in g\n"
      "[rank1]:     a()\n[rank0]:     b()\n[rank1]: torch.OutOfMemoryError: ";
  const std::vector<answers::Explanation> explained = ExplainedText(log + oom_messages::kNeighbours);
  ASSERT_EQ(explained.size(), 1u);
  ASSERT_TRUE(explained[0].failure.raised_at.has_value());
  EXPECT_THAT(explained[0].failure.raised_at->path, testing::ElementsAre("one.py:1 f"));
}

}  // namespace
}  // namespace ashlar::report
