// The corpus of a hundred real messages, judged by two checks that share nothing with the reader: every number with a
// unit in a text must be found as some figure, and the words around a number must say the role it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "analyzer/formats/oom/oom_message.h"
#include "tests/shared_dir.h"

namespace ashlar::formats {
namespace {

struct Sample {
  int line;
  std::string text;
  std::string family;
  bool truncated;
};

std::vector<Sample> Corpus() {
  std::vector<Sample> samples;
  const std::optional<std::string> shared = SharedDir();
  if (!shared) return samples;
  std::ifstream in(*shared + "/corpus/oom_messages.jsonl");
  std::string line;
  while (std::getline(in, line)) {
    const auto json = nlohmann::json::parse(line);
    samples.push_back({static_cast<int>(samples.size()) + 1, json["text"], json["family"], json["truncated"]});
  }
  return samples;
}

std::string WithoutBlanks(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c))) out.push_back(c);
  }
  return out;
}

// Every printed text of a figure of `message`, blanks taken out; what its notes quote is accounted for as well.
std::multiset<std::string> PrintedFigures(const OomMessage& message) {
  std::multiset<std::string> out;
  const auto add = [&](const std::optional<Figure>& figure) {
    if (figure) out.insert(WithoutBlanks(figure->printed));
  };
  for (const auto& slot :
       {message.tried, message.total, message.allocated, message.active, message.free, message.reserved,
        message.unallocated_reserved, message.private_pool, message.limit, message.other_in_use}) {
    add(slot);
  }
  for (const ProcessUse& process : message.processes) add(process.used);
  for (const NamedFigure& detail : message.details) out.insert(WithoutBlanks(detail.figure.printed));
  return out;
}

bool QuotedInANote(const OomMessage& message, const std::string& figure) {
  for (const trace::Note& note : message.notes) {
    if (WithoutBlanks(note.message).find(figure) != std::string::npos) return true;
  }
  return false;
}

class CorpusTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
    samples_ = Corpus();
    ASSERT_EQ(samples_.size(), 100u);
  }
  OomMessage Only(const Sample& sample) {
    const std::vector<OomMessage> found = FindOomMessages(sample.text);
    EXPECT_EQ(found.size(), 1u) << sample.line << ": " << sample.text;
    return found.empty() ? OomMessage{} : found.front();
  }
  std::vector<Sample> samples_;
};

TEST_F(CorpusTest, OneMessageOfTheLabelledFamilyEach) {
  for (const Sample& sample : samples_) {
    std::string family = Only(sample).family;
    if (family == "paddle" || family == "ggml" || family == "numba") family = "other";
    EXPECT_EQ(family, sample.family) << sample.line << ": " << sample.text;
  }
}

TEST_F(CorpusTest, TruncationAsLabelledWhereItCanBeSeen) {
  // 37, 38 and 44 are labelled cut, and stop after "unallocated." as 17 does, which is whole: PyTorch 2.14 leaves its
  // advice out where expandable segments are on. 88 stops inside its path as 92 does.
  const std::set<int> as_if_whole = {37, 38, 44}, as_if_cut = {88};
  for (const Sample& sample : samples_) {
    const bool expected = (sample.truncated || as_if_cut.count(sample.line) > 0) && as_if_whole.count(sample.line) == 0;
    EXPECT_EQ(Only(sample).truncated, expected) << sample.line << ": " << sample.text;
  }
}

TEST_F(CorpusTest, EveryNumberWithAUnitIsAccountedFor) {
  const std::regex number(R"(([0-9][0-9,]*(?:\.[0-9]+)?)\s*([KMGT]i?B|bytes|B|G)\b)");
  int numbers = 0;
  for (const Sample& sample : samples_) {
    const OomMessage message = Only(sample);
    const std::multiset<std::string> figures = PrintedFigures(message);
    std::map<std::string, std::size_t> in_text;
    for (std::sregex_iterator at(sample.text.begin(), sample.text.end(), number), end; at != end; ++at) {
      ++in_text[WithoutBlanks(at->str())];
      ++numbers;
    }
    for (const auto& [figure, count] : in_text) {
      EXPECT_TRUE(figures.count(figure) >= count || QuotedInANote(message, figure) ||
                  (message.family == "cupy" && figure == "18,446,744,073,709,551,615bytes"))
          << sample.line << ": " << figure << " is lost of\n"
          << sample.text;
    }
  }
  EXPECT_GT(numbers, 350);
}

TEST_F(CorpusTest, TheWordsAroundANumberSayItsRole) {
  const std::string size = R"(([0-9.]+ (?:[KMG]i?B|bytes)))";
  const std::vector<std::pair<std::string, std::optional<Figure> OomMessage::*>> roles = {
      {"Tried to allocate " + size, &OomMessage::tried},
      {size + " total capacity", &OomMessage::total},
      {"total capaci?ty of " + size, &OomMessage::total},
      {size + " already allocated", &OomMessage::allocated},
      {"Of the allocated memory " + size + " is allocated", &OomMessage::allocated},
      {size + " current active", &OomMessage::active},
      {size + " free;", &OomMessage::free},
      {"of which " + size + " is free", &OomMessage::free},
      {size + " allowed;", &OomMessage::limit},
      {"max allowed: " + size, &OomMessage::limit},
      {size + " reserved in total by PyTorch", &OomMessage::reserved},
      {"MPS allocated: " + size, &OomMessage::reserved},
      {"other allocations: " + size, &OomMessage::other_in_use},
      {size + " cached", &OomMessage::unallocated_reserved},
      {"and " + size + " is reserved by PyTorch but unallocated", &OomMessage::unallocated_reserved},
      {"with " + size + " allocated in private pools", &OomMessage::private_pool}};
  int seen = 0;
  for (const Sample& sample : samples_) {
    if (sample.family.rfind("pt-", 0) != 0) continue;
    const OomMessage message = Only(sample);
    const std::string flat =
        std::regex_replace(std::regex_replace(sample.text, std::regex(R"(\n[#\s]*)"), " "), std::regex(" +"), " ");
    for (const auto& [pattern, slot] : roles) {
      std::smatch match;
      if (!std::regex_search(flat, match, std::regex(pattern))) {
        // A sum stands in for what is not printed; nothing else may.
        EXPECT_TRUE(!(message.*slot) || (message.*slot)->printed.find(" + ") != std::string::npos ||
                    std::count_if(roles.begin(), roles.end(),
                                  [&, slot = slot](const auto& other) {
                                    return other.second == slot && std::regex_search(flat, std::regex(other.first));
                                  }) == 1)
            << sample.line << ": " << pattern;
        continue;
      }
      ++seen;
      ASSERT_TRUE(message.*slot) << sample.line << ": " << pattern;
      EXPECT_EQ((message.*slot)->printed, match[1].str()) << sample.line << ": " << pattern;
    }
  }
  EXPECT_GT(seen, 300);
}

TEST_F(CorpusTest, DevicesAndProcesses) {
  const std::regex device(R"([GN]PU (\d+)(?: has a|;))");
  const std::regex process(R"(Process (\d+) has)");
  for (const Sample& sample : samples_) {
    if (sample.family.rfind("pt-", 0) != 0) continue;
    const OomMessage message = Only(sample);
    std::smatch match;
    const bool told = std::regex_search(sample.text, match, device);
    EXPECT_EQ(message.device.has_value(), told) << sample.line;
    if (told) {
      EXPECT_EQ(message.device, std::stoi(match[1].str())) << sample.line;
    }
    std::vector<std::int64_t> named;
    for (std::sregex_iterator at(sample.text.begin(), sample.text.end(), process), end; at != end; ++at) {
      named.push_back(std::stoll((*at)[1].str()));
    }
    std::vector<std::int64_t> read;
    bool own = false;
    for (const ProcessUse& use : message.processes) {
      if (use.pid) read.push_back(*use.pid);
      own = own || use.is_this_process;
    }
    EXPECT_EQ(read, named) << sample.line;
    EXPECT_EQ(own, sample.text.find("this process has") != std::string::npos) << sample.line;
  }
}

}  // namespace
}  // namespace ashlar::formats
