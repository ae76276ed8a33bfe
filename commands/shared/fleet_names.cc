#include "commands/shared/fleet_names.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostDigits = 9;        // of a rank
constexpr std::uint64_t kMostSparse = 8;      // numbers for each that is there
constexpr std::size_t kMostMissingSpans = 6;  // told

// A name cut into its numbers and what stands between: texts[i] comes before numbers[i].
struct CutName {
  std::vector<std::string> texts;
  std::vector<std::string> numbers;
};

CutName CutAtNumbers(absl::string_view name) {
  CutName out{{""}, {}};
  bool in_number = false;
  for (const char c : name) {
    const bool is_digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (is_digit && !in_number) out.numbers.emplace_back();
    if (!is_digit && in_number) out.texts.emplace_back();
    in_number = is_digit;
    (is_digit ? out.numbers : out.texts).back().push_back(c);
  }
  if (in_number) out.texts.emplace_back();
  return out;
}

std::optional<std::uint64_t> RankNumber(const std::string& digits) {
  std::uint64_t out = 0;
  if (digits.empty() || digits.size() > kMostDigits || !absl::SimpleAtoi(digits, &out)) return std::nullopt;
  return out;
}

// The parts of a path, the file's name first, then its folders outward.
std::vector<std::string> PathParts(const std::string& path) {
  std::vector<std::string> out;
  std::size_t end = path.size();
  while (true) {
    const std::size_t slash = end == 0 ? std::string::npos : path.rfind('/', end - 1);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    if (begin < end) out.push_back(path.substr(begin, end - begin));
    if (slash == std::string::npos) return out;
    end = slash;
  }
}

using NameRule = std::function<std::optional<std::uint64_t>(const std::vector<std::string>& parts)>;

// All or nothing.
std::optional<std::vector<std::uint64_t>> RanksBy(const std::vector<std::vector<std::string>>& parts,
                                                  const NameRule& rule) {
  std::vector<std::uint64_t> out;
  for (const std::vector<std::string>& of_path : parts) {
    const std::optional<std::uint64_t> rank = rule(of_path);
    if (!rank.has_value()) return std::nullopt;
    out.push_back(*rank);
  }
  return out;
}

// The place of the one number in which the names of this level differ, where they have nothing else that differs.
std::optional<std::size_t> DifferingNumber(const std::vector<std::vector<std::string>>& parts, std::size_t level) {
  std::vector<CutName> cuts;
  for (const std::vector<std::string>& of_path : parts) {
    if (of_path.size() <= level) return std::nullopt;
    cuts.push_back(CutAtNumbers(of_path[level]));
    if (cuts.back().texts != cuts.front().texts) return std::nullopt;
  }
  std::optional<std::size_t> out;
  for (std::size_t i = 0; i < cuts.front().numbers.size(); ++i) {
    std::set<std::string> values;
    for (const CutName& cut : cuts) values.insert(cut.numbers[i]);
    if (values.size() == 1) continue;
    if (out.has_value() || values.size() < cuts.size()) return std::nullopt;
    out = i;
  }
  return out;
}

// Numbers of a span: "2-9", "4".
std::string SpanText(std::uint64_t first, std::uint64_t last) {
  return first == last ? absl::StrCat(first) : absl::StrCat(first, last == first + 1 ? ", " : "-", last);
}

// "; ranks 2-9 are missing": the gaps from `first` on. Where most of the numbers are missing they count no ranks.
std::string MissingRanks(const std::set<std::uint64_t>& ranks, std::uint64_t first) {
  if (ranks.size() < 2 || *ranks.rbegin() - first >= kMostSparse * ranks.size()) return "";
  std::string out;
  std::uint64_t count = 0;
  std::size_t spans = 0;
  std::uint64_t next = first;
  for (const std::uint64_t rank : ranks) {
    if (rank > next) {
      count += rank - next;
      if (++spans <= kMostMissingSpans) absl::StrAppend(&out, out.empty() ? "" : ", ", SpanText(next, rank - 1));
    }
    next = rank + 1;
  }
  if (out.empty()) return "";
  return absl::StrCat(count == 1 ? "; rank " : "; ranks ", out, spans > kMostMissingSpans ? " and more" : "",
                      count == 1 ? " is missing" : " are missing");
}

// "; rank 3 has several files".
std::string RepeatedRanks(std::vector<std::uint64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::uint64_t> out;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] == ranks[i - 1]) out.push_back(ranks[i]);
  }
  if (out.empty()) return "";
  const bool is_one = out.front() == out.back();
  return absl::StrCat(is_one ? "; rank " : "; ranks ", RankList(out), is_one ? " has" : " have", " several files");
}

// `first`: the lowest number that there should be; nullopt: the lowest that there is.
std::string AssumedRanks(absl::string_view how, const std::vector<std::string>& paths,
                         const std::vector<std::uint64_t>& ranks, std::optional<std::uint64_t> first) {
  std::string out = absl::StrCat("ranks are told from ", how);
  if (paths.empty()) return out;
  const std::set<std::uint64_t> seen(ranks.begin(), ranks.end());
  absl::StrAppend(&out, ": ", paths.back(), " is rank ", ranks.back(), RepeatedRanks(ranks),
                  MissingRanks(seen, first.value_or(*seen.begin())));
  return out;
}

}  // namespace

std::optional<std::uint64_t> RankInName(const std::string& name) {
  const CutName cut = CutAtNumbers(absl::AsciiStrToLower(name));
  for (std::size_t i = 0; i < cut.numbers.size(); ++i) {
    absl::string_view before = cut.texts[i];
    if (!before.empty() && absl::StrContains("_-=.", before.substr(before.size() - 1))) before.remove_suffix(1);
    if (absl::EndsWith(before, "rank")) return RankNumber(cut.numbers[i]);
  }
  return std::nullopt;
}

RankNames NameRanks(const std::vector<std::string>& paths) {
  std::vector<std::vector<std::string>> parts;
  for (const std::string& path : paths) parts.push_back(PathParts(path));
  const auto in_name = [](const std::vector<std::string>& of_path) {
    return of_path.empty() ? std::nullopt : RankInName(of_path.front());
  };
  if (auto ranks = RanksBy(parts, in_name))
    return {*ranks, AssumedRanks("\"rank\" in the files' names", paths, *ranks, 0)};
  const auto in_folder = [](const std::vector<std::string>& of_path) {
    for (std::size_t i = 1; i < of_path.size(); ++i) {
      if (const auto rank = RankInName(of_path[i])) return rank;
    }
    return std::optional<std::uint64_t>();
  };
  if (auto ranks = RanksBy(parts, in_folder))
    return {*ranks, AssumedRanks("\"rank\" in the folders' names", paths, *ranks, 0)};
  for (std::size_t level = 0; level < 3 && paths.size() > 1; ++level) {
    const std::optional<std::size_t> place = DifferingNumber(parts, level);
    if (!place.has_value()) continue;
    const auto by_number = [&](const std::vector<std::string>& of_path) {
      return RankNumber(CutAtNumbers(of_path[level]).numbers[*place]);
    };
    const absl::string_view how =
        level == 0 ? "the number in which the files' names differ" : "the number in which the folders' names differ";
    if (auto ranks = RanksBy(parts, by_number)) return {*ranks, AssumedRanks(how, paths, *ranks, std::nullopt)};
  }
  std::vector<std::uint64_t> ranks(paths.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  return {ranks, AssumedRanks("the order of the names, which hold no number of their own for each", paths, ranks, 0)};
}

bool NameComesBefore(absl::string_view a, absl::string_view b) {
  const CutName left = CutAtNumbers(a);
  const CutName right = CutAtNumbers(b);
  const auto value = [](const std::string& digits) {
    const std::string bare = digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
    return std::pair(bare.size(), bare);
  };
  const std::size_t both = std::min(left.numbers.size(), right.numbers.size());
  for (std::size_t i = 0; i <= both; ++i) {
    if (left.texts[i] != right.texts[i]) return left.texts[i] < right.texts[i];
    if (i == both) break;
    const auto x = value(left.numbers[i]);
    const auto y = value(right.numbers[i]);
    if (x != y) return x < y;
  }
  if (left.numbers.size() != right.numbers.size()) return left.numbers.size() < right.numbers.size();
  return a < b;
}

std::string RankList(std::vector<std::uint64_t> ranks, std::size_t most) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string out;
  std::size_t spans = 0;
  for (std::size_t i = 0; i < ranks.size(); ++spans) {
    if (spans == most) return absl::StrCat(out, " and ", ranks.size() - i, " more");
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&out, out.empty() ? "" : ", ", ranks[i]);
    if (last > i) absl::StrAppend(&out, last == i + 1 ? ", " : "-", ranks[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace ashlar::answers
