#include "analyzer/formats/plain/minimalloc_csv.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "analyzer/formats/decimal.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

constexpr std::uint64_t kMaxTotal = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxTime = std::uint64_t{1} << 62;

enum CsvColumn : std::uint8_t { kId, kLower, kUpper, kSize, kOffset, kColumns };
constexpr std::array<absl::string_view, kColumns> kColumnNames = {"id", "lower", "upper", "size", "offset"};

struct CsvField {
  absl::string_view text;
  std::size_t column = 0;  // of its first character, from 1
};

std::vector<CsvField> Split(absl::string_view line) {
  std::vector<CsvField> out;
  std::size_t column = 1;
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(text);
    const std::size_t blanks = stripped.empty() ? 0 : static_cast<std::size_t>(stripped.data() - text.data());
    out.push_back({stripped, column + blanks});
    column += text.size() + 1;
  }
  return out;
}

absl::Status Bad(std::size_t line, std::size_t column, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("CSV ", line, ":", column, ": ", what));
}

class CsvParser {
 public:
  absl::StatusOr<PackingProblem> Parse(absl::string_view text) {
    std::size_t line = 0;
    for (absl::string_view row : absl::StrSplit(text, '\n')) {
      ++line;
      if (absl::StripAsciiWhitespace(row).empty()) continue;
      const std::vector<CsvField> fields = Split(row);
      absl::Status status = has_header_ ? AddBuffer(fields, line) : ReadHeader(fields, line);
      if (!status.ok()) return status;
    }
    if (has_header_) return std::move(out_);
    return absl::InvalidArgumentError("CSV 1:1: no header line; the first line is id,lower,upper,size[,offset]");
  }

 private:
  absl::Status ReadHeader(const std::vector<CsvField>& fields, std::size_t line) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto name = std::find(kColumnNames.begin(), kColumnNames.end(), fields[i].text);
      if (name == kColumnNames.end()) {
        return Bad(line, fields[i].column,
                   absl::StrCat("column ", Quoted(fields[i].text), " is none of ", absl::StrJoin(kColumnNames, ", "),
                                "; take it out"));
      }
      std::optional<std::size_t>& place = places_[static_cast<std::size_t>(name - kColumnNames.begin())];
      if (place.has_value()) return Bad(line, fields[i].column, absl::StrCat("column ", *name, " stands here twice"));
      place = i;
    }
    for (const CsvColumn column : {kId, kLower, kUpper, kSize}) {
      if (!places_[column]) {
        return Bad(line, 1,
                   absl::StrCat("no column ", kColumnNames[column], "; the header is id,lower,upper,size[,offset]"));
      }
    }
    has_header_ = true;
    columns_ = fields.size();
    return absl::OkStatus();
  }

  absl::Status AddBuffer(const std::vector<CsvField>& fields, std::size_t line) {
    if (fields.size() != columns_) {
      return Bad(line, fields.back().column,
                 absl::StrCat(fields.size(), " fields, the header has ", columns_, "; one field a column"));
    }
    const CsvField& id = fields[*places_[kId]];
    if (!seen_.emplace(id.text).second) {
      return Bad(line, id.column, absl::StrCat("id ", Quoted(id.text), " stands here twice; ids are unique"));
    }
    std::uint64_t lower = 0, upper = 0, size = 0, offset = 0;
    for (const auto& [column, value] :
         {std::pair(kLower, &lower), std::pair(kUpper, &upper), std::pair(kSize, &size), std::pair(kOffset, &offset)}) {
      if (!places_[column]) continue;
      absl::Status status = ReadNumber(fields[*places_[column]], line, value);
      if (!status.ok()) return status;
    }
    if (upper <= lower || upper > kMaxTime) {
      return Bad(line, fields[*places_[kUpper]].column,
                 absl::StrCat("upper ", upper, " is not above lower ", lower, " (half-open), or above 2^62"));
    }
    if (size == 0 || size > kMaxTotal - total_) {
      return Bad(line, fields[*places_[kSize]].column,
                 absl::StrCat("size ", size, " is 0, or all sizes together pass 2^62"));
    }
    total_ += size;
    out_.ids.emplace_back(id.text);
    out_.buffers.push_back({static_cast<std::int64_t>(lower), static_cast<std::int64_t>(upper), size});
    if (places_[kOffset]) out_.offsets.push_back(offset);
    return absl::OkStatus();
  }

  static absl::Status ReadNumber(const CsvField& field, std::size_t line, std::uint64_t* value) {
    const char* at = field.text.data();
    const char* end = at + field.text.size();
    if (!field.text.empty() && ScanDecimal(&at, end, value) && at == end) return absl::OkStatus();
    return Bad(line, field.column, absl::StrCat(Quoted(field.text), " is not a whole number from 0 to 2^64 - 1"));
  }

  PackingProblem out_;
  std::array<std::optional<std::size_t>, kColumns> places_;
  std::set<std::string, std::less<>> seen_;
  std::size_t columns_ = 0;
  std::uint64_t total_ = 0;
  bool has_header_ = false;
};

}  // namespace

absl::StatusOr<PackingProblem> ParseMinimallocCsv(absl::string_view text) { return CsvParser().Parse(text); }

std::string WriteMinimallocCsv(const PackingProblem& problem) {
  const bool has_offsets = !problem.offsets.empty();
  std::string out = has_offsets ? "id,lower,upper,size,offset\n" : "id,lower,upper,size\n";
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const trace::Lifetime& buffer = problem.buffers[i];
    absl::StrAppend(&out, problem.ids[i], ",", buffer.lower, ",", buffer.upper, ",", buffer.size);
    if (has_offsets) absl::StrAppend(&out, ",", problem.offsets[i]);
    out += "\n";
  }
  return out;
}

bool IsMinimallocCsv(absl::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == absl::string_view::npos) return false;
  std::set<absl::string_view> names;
  for (const CsvField& field : Split(text.substr(start, text.find('\n', start) - start))) names.insert(field.text);
  return std::count_if(names.begin(), names.end(), [](absl::string_view name) {
           return std::find(kColumnNames.begin(), kColumnNames.end(), name) != kColumnNames.end();
         }) >= 3;
}

}  // namespace ashlar::formats
