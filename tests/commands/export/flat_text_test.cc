#include "commands/export/flat_text.h"

#include <string>

#include "gtest/gtest.h"

namespace ashlar::exports {
namespace {

std::string Json(const std::string& text) {
  std::string out;
  AppendJsonText(text, out);
  return out;
}

std::string Csv(const std::string& text) {
  std::string out;
  AppendCsvText(text, out);
  return out;
}

TEST(FlatTextTest, JsonIsEscaped) {
  EXPECT_EQ(Json("plain \xc3\xa9"), "\"plain \xc3\xa9\"");
  EXPECT_EQ(Json("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(Json("\xff"), "\"?\"");
  EXPECT_EQ(Json("\x1b[0m \x7f \xc2\x9b"), "\"\\u001b[0m \\u007f \\u009b\"");
}

TEST(FlatTextTest, CsvIsQuotedWhereItMustBe) {
  EXPECT_EQ(Csv("model.py:5 f"), "model.py:5 f");
  EXPECT_EQ(Csv("a,b"), "\"a,b\"");
  EXPECT_EQ(Csv("say \"hi\"\nnow"), "\"say \"\"hi\"\"\nnow\"");
  EXPECT_EQ(Csv("one\r\ntwo\n\r\x7f"), "\"one\r\ntwo\n??\"");
  EXPECT_EQ(Csv("\x1b[0m\xc2\x9b\xff\r"), "?[0m???");
}

TEST(FlatTextTest, ASpreadsheetWorksNothingOut) {
  EXPECT_EQ(Csv("=1+2"), "'=1+2");
  EXPECT_EQ(Csv("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(Csv("+cmd|' /C calc'!A0"), "'+cmd|' /C calc'!A0");
  EXPECT_EQ(Csv("-2+3,4"), "\"'-2+3,4\"");
  for (const std::string number : {"-5", "+1", "-1.5e-3", "17", ""}) EXPECT_EQ(Csv(number), number);
  EXPECT_EQ(Csv("\t\n=1"), "\"'?\n=1\"");
  EXPECT_EQ(Csv("a=b"), "a=b");
}

TEST(FlatTextTest, FramesReadLikeCode) {
  EXPECT_EQ(FrameText({.file = "a/model.py", .function = "forward", .line = 5}), "forward (a/model.py:5)");
  EXPECT_EQ(FrameText({.file = "a/model.py", .function = "forward", .line = -1}), "forward (a/model.py)");
  EXPECT_EQ(FrameText({.file = trace::kScopeFile, .function = "layer", .line = 0}), "layer");
  EXPECT_EQ(FrameText({.file = "a.cc", .function = "", .line = 3}), "(a.cc:3)");
  EXPECT_EQ(FrameText({}), "unknown");
}

}  // namespace
}  // namespace ashlar::exports
