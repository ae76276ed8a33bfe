// Any bytes: every message cut at every byte, random damage, noise around, windows of a long text.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/formats/oom/oom_message.h"
#include "tests/analyzer/formats/oom/messages.h"
#include "tests/shared_dir.h"

namespace ashlar::formats {
namespace {

std::vector<std::string> Texts() {
  std::vector<std::string> texts(std::begin(oom_messages::kAll), std::end(oom_messages::kAll));
  const std::optional<std::string> shared = SharedDir();
  if (!shared) return texts;
  std::ifstream in(*shared + "/corpus/oom_messages.jsonl");
  std::string line;
  while (std::getline(in, line)) texts.push_back(nlohmann::json::parse(line)["text"]);
  return texts;
}

void ExpectInterval(const std::optional<Figure>& figure) {
  if (!figure) return;
  EXPECT_LE(figure->low_bytes, figure->high_bytes);
  EXPECT_LT(figure->low_bytes, std::uint64_t{1} << 57);
  EXPECT_FALSE(figure->printed.empty());
}

// What must hold for any text at all.
void ExpectSane(const std::string& text) {
  std::size_t end = 0;
  for (const OomMessage& message : FindOomMessages(text)) {
    EXPECT_GE(message.byte_offset, end);
    EXPECT_GT(message.end_offset, message.byte_offset);
    EXPECT_LE(message.end_offset, text.size());
    end = message.end_offset;
    EXPECT_FALSE(message.family.empty());
    for (const auto& slot : {message.tried, message.total, message.allocated, message.active, message.free,
                             message.reserved, message.unallocated_reserved, message.private_pool, message.limit}) {
      ExpectInterval(slot);
    }
    const analyses::OomMessageVerdict verdict = analyses::JudgeOomMessage(message, {});
    EXPECT_FALSE(verdict.evidence.empty());
    EXPECT_TRUE(!verdict.headroom || verdict.headroom->low_bytes <= verdict.headroom->high_bytes);
  }
}

bool Same(const std::optional<Figure>& cut, const std::optional<Figure>& whole) {
  return !cut || (whole && cut->low_bytes == whole->low_bytes && cut->high_bytes == whole->high_bytes);
}

TEST(OomMessageRobustnessTest, CutAtEveryByteTellsLessButNothingElse) {
  for (const std::string& text : Texts()) {
    const std::vector<OomMessage> whole = FindOomMessages(text);
    ASSERT_EQ(whole.size(), 1u);
    for (std::size_t length = 0; length < text.size(); ++length) {
      ExpectSane(text.substr(0, length));
      const std::vector<OomMessage> cut = FindOomMessages(text.substr(0, length));
      ASSERT_LE(cut.size(), 1u);
      if (cut.empty() || whole[0].family == "ggml" || whole[0].family == "paddle") continue;
      SCOPED_TRACE(text.substr(0, length));
      EXPECT_TRUE(Same(cut[0].tried, whole[0].tried));
      EXPECT_TRUE(Same(cut[0].total, whole[0].total));
      EXPECT_TRUE(Same(cut[0].allocated, whole[0].allocated));
      EXPECT_TRUE(Same(cut[0].free, whole[0].free));
      EXPECT_TRUE(Same(cut[0].reserved, whole[0].reserved) || whole[0].notes.size() > 0);
      EXPECT_TRUE(Same(cut[0].unallocated_reserved, whole[0].unallocated_reserved));
      EXPECT_TRUE(Same(cut[0].limit, whole[0].limit));
    }
  }
}

TEST(OomMessageRobustnessTest, CutAtTheHead) {
  for (const std::string text : oom_messages::kAll) {
    for (std::size_t begin = 0; begin < text.size(); ++begin) ExpectSane(text.substr(begin));
  }
}

TEST(OomMessageRobustnessTest, RandomDamage) {
  std::mt19937 random(20240607);
  const std::vector<std::string> texts = Texts();
  const std::string pieces[] = {"999999999999999999999999999999",
                                "0.",
                                ".",
                                "GiB",
                                "(",
                                ")",
                                ";",
                                std::string(1, '\0'),
                                "\xff\xfe",
                                "\n",
                                "-1",
                                "Tried to allocate ",
                                "CUDA out of memory.",
                                "18446744073709551616 ",
                                "1.99999999999999999999999999999 GiB",
                                "\x1b[",
                                "\\n",
                                "% ",
                                ","};
  for (int round = 0; round < 8000; ++round) {
    std::string text = texts[random() % texts.size()];
    for (int damage = 0; damage < 1 + static_cast<int>(random() % 6); ++damage) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.insert(at, pieces[random() % std::size(pieces)]);
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          if (at < text.size()) text[at] = static_cast<char>(random() % 256);
          break;
        default:
          text.insert(at, texts[random() % texts.size()].substr(0, random() % 80));
          break;
      }
    }
    ExpectSane(text);
    if (testing::Test::HasFailure()) FAIL() << "round " << round << ": " << text;
  }
}

TEST(OomMessageRobustnessTest, NoiseIsNoMessage) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string noise(random() % 5000, ' ');
    for (char& c : noise) c = static_cast<char>(random() % 256);
    EXPECT_TRUE(FindOomMessages(noise).empty());
  }
}

TEST(OomMessageRobustnessTest, FoundOnceWhereverAWindowEnds) {
  // The reader cuts long texts at multiples of 2^20 bytes.
  const std::string message = oom_messages::kNeighbours;
  for (const std::size_t at : {(std::size_t{1} << 20) - 700, (std::size_t{1} << 20) - 600, (std::size_t{1} << 20) - 30,
                               (std::size_t{1} << 20) - 24, (std::size_t{1} << 20) - 1, std::size_t{1} << 20,
                               (std::size_t{1} << 20) + 1, (std::size_t{1} << 21) - 200}) {
    std::string log(at, '.');
    log += message;
    log += std::string(3000, '.');
    const std::vector<OomMessage> found = FindOomMessages(log);
    ASSERT_EQ(found.size(), 1u) << at;
    EXPECT_EQ(found[0].byte_offset, at + message.find("CUDA"));
    EXPECT_FALSE(found[0].truncated);
    EXPECT_EQ(found[0].processes.size(), 3u);
  }
}

}  // namespace
}  // namespace ashlar::formats
