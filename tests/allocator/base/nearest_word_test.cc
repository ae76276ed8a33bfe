#include "allocator/base/nearest_word.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ashlar {
namespace {

const std::vector<std::string>& Words() {
  static const auto& words = *new std::vector<std::string>{"explain", "replay", "dry-run", "record", "run"};
  return words;
}

TEST(NearestWordTest, OneEditOfEachKind) {
  for (const char* word : {"explan", "explainn", "explaim", "explian", "EXPLAIN"}) {
    EXPECT_EQ(NearestWord(word, Words()), "explain") << word;
  }
}

TEST(NearestWordTest, NothingWhereTooMuchDiffers) {
  EXPECT_EQ(NearestWord("exclaims", Words()), "explain") << "three edits of eight letters";
  EXPECT_EQ(NearestWord("exclude", Words()), std::nullopt);
  EXPECT_EQ(NearestWord("x", Words()), std::nullopt);
  EXPECT_EQ(NearestWord("", Words()), std::nullopt);
  EXPECT_EQ(NearestWord(std::string(1'000'000, 'x'), Words()), std::nullopt);
}

TEST(NearestWordTest, OfSeveralTheNearestOfEqualsTheFirst) {
  EXPECT_EQ(NearestWord("rum", Words()), "run");
  EXPECT_EQ(NearestWord("ab", {"abc", "abd"}), "abc");
  EXPECT_EQ(NearestWord("abd", {"abc", "abd"}), "abd");
}

TEST(NearestWordTest, AsAQuestion) {
  EXPECT_EQ(DidYouMean("dryrun", Words()), "did you mean 'dry-run'?");
  EXPECT_EQ(DidYouMean("sweep", Words()), "");
}

}  // namespace
}  // namespace ashlar
