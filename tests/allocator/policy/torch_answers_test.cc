// Holds the parser to PyTorch's own answers (torch_answers/answers.tsv, made by torch_answers/make.py): what is
// refused, and the values that are read, for every text and release. Where ours differs on purpose,
// docs/library/settings.md says so, and kExceptions has the kind.
#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "allocator/policy/options.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

struct Row {
  std::string text;
  std::vector<std::string> cells;  // of the releases, in the order of the table's head
};

struct Answers {
  std::vector<std::string> releases;
  std::vector<Row> rows;
};

// "\"a\\tb\"" -> "a\tb". Escapes that the table has are those of C.
std::string Unquoted(absl::string_view json) {
  std::string out;
  EXPECT_TRUE(absl::CUnescape(json.substr(1, json.size() - 2), &out)) << json;
  return out;
}

Answers ReadAnswers() {
  Answers out;
  std::ifstream file(ASHLAR_SOURCE_DIR "/tests/allocator/policy/torch_answers/answers.tsv");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "#")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '\t');
    std::string text = cells.front();
    cells.erase(cells.begin());
    if (out.releases.empty()) {
      out.releases = std::move(cells);
    } else {
      out.rows.push_back({Unquoted(text), std::move(cells)});
    }
  }
  return out;
}

// "2.14.1" -> the rules of 2.14.
Compat CompatOf(const std::string& release) {
  const absl::StatusOr<Compat> out = ParseCompat(absl::StrCat("torch-", release.substr(0, release.rfind('.'))));
  EXPECT_TRUE(out.ok()) << out.status();
  return out.value_or(Compat::kTorchLatest);
}

std::string Divisions(const Options& options) { return absl::StrJoin(options.roundup_power2_divisions, ","); }

// As a snapshot shows them; those that differ from the defaults.
std::map<std::string, std::string> Shown(const Options& options) {
  std::map<std::string, std::string> out;
  if (options.max_split_size_bytes != kUnlimited) {
    out["max_split_size"] = absl::StrCat(static_cast<std::int64_t>(options.max_split_size_bytes));
  }
  if (options.garbage_collection_threshold != 0) {
    out["garbage_collection_threshold"] = absl::StrCat(options.garbage_collection_threshold);
  }
  if (options.expandable_segments) out["expandable_segments"] = "True";
  if (Divisions(options) != Divisions({})) out["roundup_power2_divisions"] = Divisions(options);
  return out;
}

// Of PyTorch's cell, what our options have as well.
std::map<std::string, std::string> Shown(const std::string& cell) {
  static const std::set<std::string> kOurs = {"max_split_size", "garbage_collection_threshold", "expandable_segments",
                                              "roundup_power2_divisions"};
  std::map<std::string, std::string> out;
  if (cell == "yes") return out;
  for (const absl::string_view part : absl::StrSplit(cell, ' ')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (kOurs.count(pair.first) > 0) out.insert(pair);
  }
  return out;
}

struct Question {
  std::string text;
  std::string release;
  Compat compat;
};

// 2.13 to 2.15 have one set of rules, so of keys as well.
bool HasKeyOf215(const Question& q) {
  return q.release.starts_with("2.14") && absl::StartsWith(q.text, "expandable_segments_reserve");
}

bool HasKeyOfMain(const Question& q) {
  return q.compat == Compat::kTorchLatest && absl::StartsWith(q.text, "use_cuda_host_register:");
}

// PyTorch 2.6 looks behind the last word there.
bool IsOpenList(const Question& q) {
  return q.compat == Compat::kTorch26 && absl::StrContains(q.text, ":[") && !absl::StrContains(q.text, "]");
}

struct Exception {
  const char* kind;
  bool (*applies)(const Question& question);
  bool is_taken_by_us;  // and refused by PyTorch; else the other way
};

constexpr std::array<Exception, 3> kExceptions = {{
    {"a key that came with 2.15, before it", HasKeyOf215, true},
    {"a key of PyTorch's main branch that no release has", HasKeyOfMain, true},
    {"a list without its end, up to 2.6", IsOpenList, false},
}};

// The exception that the difference is; nullptr: none.
const Exception* ExceptionOf(const Question& question, bool is_taken_by_us) {
  for (const Exception& exception : kExceptions) {
    if (exception.is_taken_by_us == is_taken_by_us && exception.applies(question)) return &exception;
  }
  return nullptr;
}

TEST(TorchAnswersTest, TheParserAnswersAsPyTorchDoes) {
  const Answers answers = ReadAnswers();
  EXPECT_GE(answers.rows.size(), 300u);
  EXPECT_EQ(answers.releases, (std::vector<std::string>{"2.6.0", "2.12.0", "2.14.1", "2.15.0"}));
  std::set<std::string> met;
  for (const Row& row : answers.rows) {
    ASSERT_EQ(row.cells.size(), answers.releases.size());
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string where =
          absl::StrCat("'", row.text, "' and ", answers.releases[i], ", which says ", row.cells[i]);
      const Compat compat = CompatOf(answers.releases[i]);
      const absl::StatusOr<Options> ours = ParseConf(row.text, compat, Keys::kTorch);
      ASSERT_NE(row.cells[i], "?") << where << ": run make.py";
      const bool is_taken = row.cells[i] != "no";
      if (ours.ok() != is_taken) {
        const Exception* exception = ExceptionOf({row.text, answers.releases[i], compat}, ours.ok());
        EXPECT_NE(exception, nullptr) << where << "; ours: " << ours.status();
        if (exception != nullptr) met.insert(exception->kind);
      } else if (is_taken) {
        EXPECT_EQ(Shown(*ours), Shown(row.cells[i])) << where;
      }
    }
  }
  for (const Exception& exception : kExceptions) EXPECT_EQ(met.count(exception.kind), 1u) << exception.kind;
}

// In a record no text is refused, and what PyTorch took has the same values.
TEST(TorchAnswersTest, ARecordIsNeverRefused) {
  const Answers answers = ReadAnswers();
  for (const Row& row : answers.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const Compat compat = CompatOf(answers.releases[i]);
      const Options ours = ReadRecordedConf(row.text, compat);
      EXPECT_TRUE(ParseConf(ours.conf, compat, Keys::kAshlar).ok()) << "what is left of '" << row.text << "'";
      if (row.cells[i] == "no" || ExceptionOf({row.text, answers.releases[i], compat}, false) != nullptr) continue;
      EXPECT_EQ(Shown(ours), Shown(row.cells[i])) << row.text;
    }
  }
}

}  // namespace
}  // namespace ashlar::policy
