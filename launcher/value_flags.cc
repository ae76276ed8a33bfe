#include "launcher/value_flags.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"

namespace ashlar::cli {
namespace {

constexpr std::size_t kMostReadingLines = 4;  // that are named

bool IsElement(absl::string_view text) {
  const std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  const std::string bare(absl::StripPrefix(word, "-"));
  if (word == "true" || word == "false" || bare == "nan" || bare == "inf") return true;
  double number = 0;
  return !word.empty() && word.find_first_not_of("0123456789.e+-") == std::string::npos &&
         absl::SimpleAtod(word, &number);
}

bool IsValue(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "[")) return IsElement(text);
  if (!absl::ConsumeSuffix(&text, "]")) return false;
  const std::vector<absl::string_view> elements = absl::StrSplit(text, ',');
  return std::all_of(elements.begin(), elements.end(), IsElement);
}

// "train.py:88" and "0.5"; nullopt: it has not that form.
std::optional<std::pair<absl::string_view, absl::string_view>> PlaceAndValue(absl::string_view text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t colon = text.substr(0, equals).rfind(':');
  if (equals == absl::string_view::npos || colon == absl::string_view::npos || colon == 0) return std::nullopt;
  std::int64_t line = 0;
  const bool is_line = absl::SimpleAtoi(text.substr(colon + 1, equals - colon - 1), &line) && line > 0;
  if (!is_line || absl::StrContains(text, '\n')) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::string Times(std::uint64_t count) { return count == 1 ? "once" : absl::StrCat(FormatCount(count), " times"); }

std::string LinesThatRead(const std::vector<ReadingLine>& lines) {
  if (lines.empty()) return "no line of a PyTorch program did";
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostReadingLines); ++i) {
    named.push_back(absl::StrCat(lines[i].line, " (", Times(lines[i].count), ")"));
  }
  return absl::StrCat("lines that did: ", absl::StrJoin(named, ", "),
                      lines.size() > named.size() ? absl::StrCat(" and ", lines.size() - named.size(), " more") : "");
}

}  // namespace

void AddValueFlag(Command& app, std::vector<std::string>& texts) {
  app.Add("--value", texts,
          "what a line of the program reads of the device: train.py:88=0.5; several values of one line come in turn")
      .Takes("FILE:LINE=VALUE")
      .NotEmpty()
      .OneValueEach();
}

absl::Status CheckValues(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const auto parts = PlaceAndValue(text);
    if (!parts.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--value: '", text, "' is not FILE:LINE=VALUE, such as train.py:88=0.5"));
    }
    if (!IsValue(parts->second)) {
      return absl::InvalidArgumentError(absl::StrCat("--value ", parts->first, ": '", parts->second,
                                                     "' is neither a number, such as 0.5, 3, nan or inf, nor true or "
                                                     "false, nor a list of these, such as [1,2,3]"));
    }
  }
  return absl::OkStatus();
}

void PutValues(const std::vector<std::string>& texts, std::map<std::string, std::string>& environment) {
  if (!texts.empty()) environment["ASHLAR_VALUE"] = absl::StrJoin(texts, "\n");
}

std::string ValuesThatWereRead(const std::vector<GivenValue>& values) {
  std::vector<std::string> read;
  for (const GivenValue& value : values) {
    if (value.reads > 0) read.push_back(absl::StrCat(value.flag, " (", Times(value.reads), ")"));
  }
  return read.empty() ? "" : absl::StrCat("--value ", absl::StrJoin(read, ", "));
}

std::vector<std::string> ValuesThatWereNot(const std::vector<GivenValue>& values,
                                           const std::vector<ReadingLine>& lines) {
  std::map<std::string, std::uint64_t> reads;  // of a place, by any of its values
  const auto place_of = [](const GivenValue& value) { return value.flag.substr(0, value.flag.rfind('=')); };
  for (const GivenValue& value : values) reads[place_of(value)] += value.reads;
  std::vector<std::string> out;
  for (const GivenValue& value : values) {
    const std::string place = place_of(value);
    const std::string flag = absl::StrCat("--value ", value.flag, ": ");
    if (!value.why_not.empty()) {
      out.push_back(absl::StrCat(flag, value.why_not));
    } else if (value.reads == 0 && reads[place] > 0) {
      out.push_back(absl::StrCat(flag, "its turn did not come: ", place, " read values ", Times(reads[place])));
    } else if (value.reads == 0) {
      out.push_back(absl::StrCat(flag, place, " read no value of the device; ", LinesThatRead(lines)));
    }
  }
  return out;
}

}  // namespace ashlar::cli
