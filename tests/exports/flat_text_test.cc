#include "analyzer/exports/flat_text.h"

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
}

TEST(FlatTextTest, CsvIsQuotedWhereItMustBe) {
  EXPECT_EQ(Csv("model.py:5 f"), "model.py:5 f");
  EXPECT_EQ(Csv("a,b"), "\"a,b\"");
  EXPECT_EQ(Csv("say \"hi\"\nnow"), "\"say \"\"hi\"\"\nnow\"");
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
