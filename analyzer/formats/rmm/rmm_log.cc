#include "analyzer/formats/rmm/rmm_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "allocator/trace/request_window.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

enum RmmColumn : std::uint8_t { kThreadId, kTimeOfDay, kActionName, kPointer, kBytesAsked, kStreamHandle, kRmmColumns };
constexpr std::array<absl::string_view, kRmmColumns> kRmmNames = {"Thread",  "Time", "Action",
                                                                  "Pointer", "Size", "Stream"};
constexpr std::size_t kMostRmmFields = 64;
constexpr std::uint64_t kMostRmmBytes = std::numeric_limits<std::int64_t>::max();

constexpr absl::string_view kLeftOut = " left out";
constexpr absl::string_view kOneFailed = " failed request left out";
constexpr absl::string_view kManyFailed = " failed requests left out";

// The fields of one line, without the blanks around them.
struct RmmRow {
  std::array<absl::string_view, kMostRmmFields> text;
  std::array<std::size_t, kMostRmmFields> column;  // of the first character, from 1
  std::size_t count = 0;
};

RmmRow SplitRmmRow(absl::string_view line) {
  RmmRow out;
  std::size_t at = 0;
  while (out.count < kMostRmmFields) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    const absl::string_view field = line.substr(at, end - at);
    out.text[out.count] = absl::StripAsciiWhitespace(field);
    out.column[out.count++] = at + 1;
    if (end == line.size()) break;
    at = end + 1;
  }
  return out;
}

absl::string_view TakeRmmLine(absl::string_view& text, bool& is_whole) {
  const std::size_t end = text.find('\n');
  is_whole = end != absl::string_view::npos;
  const absl::string_view line = text.substr(0, end);
  text.remove_prefix(is_whole ? end + 1 : text.size());
  return line;
}

bool ReadWholeNumber(absl::string_view text, int base, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool ReadHexNumber(absl::string_view text, std::uint64_t& value) {
  if (!absl::ConsumePrefix(&text, "0x")) absl::ConsumePrefix(&text, "0X");
  return ReadWholeNumber(text, 16, value);
}

// Where each column stands; kMostRmmFields: nowhere.
using RmmPlaces = std::array<std::size_t, kRmmColumns>;

RmmPlaces RmmPlacesOf(const RmmRow& header) {
  RmmPlaces out;
  for (std::size_t column = 0; column < kRmmColumns; ++column) {
    const auto* const begin = header.text.begin();
    const auto* const found = std::find(begin, begin + header.count, kRmmNames[column]);
    out[column] = found == begin + header.count ? kMostRmmFields : static_cast<std::size_t>(found - begin);
  }
  return out;
}

bool HasRmmColumns(const RmmPlaces& places) {
  return places[kActionName] != kMostRmmFields && places[kPointer] != kMostRmmFields &&
         places[kBytesAsked] != kMostRmmFields;
}

class RmmLogReader {
 public:
  explicit RmmLogReader(const ReadLimits& limits) : requests_(limits.max_events) {}

  absl::StatusOr<trace::RequestTrace> Read(absl::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    bool is_whole = true;
    const RmmRow header = SplitRmmRow(TakeRmmLine(text, is_whole));
    places_ = RmmPlacesOf(header);
    if (!HasRmmColumns(places_)) {
      return absl::InvalidArgumentError(
          "RMM log 1:1: no header line; the first line is Thread,Time,Action,Pointer,Size,Stream");
    }
    fields_ = header.count;
    PagesBehind behind(text.data());
    while (!text.empty()) {
      behind.ReadTo(text.data());
      const absl::string_view line = TakeRmmLine(text, is_whole);
      ++line_;
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      absl::Status status = Row(SplitRmmRow(line));
      if (!status.ok() && is_whole) return status;
      cut_ += status.ok() ? 0 : 1;
    }
    return requests_.Finish({.requests = {}, .id_count = id_count_, .source = Source()});
  }

 private:
  absl::Status Bad(const RmmRow& row, std::size_t field, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("RMM log ", line_, ":", row.column[field], ": ", what));
  }

  absl::Status Row(const RmmRow& row) {
    if (row.count != fields_) {
      return Bad(row, row.count - 1,
                 absl::StrCat(row.count, " fields, the header has ", fields_, "; one field a column"));
    }
    std::uint64_t pointer = 0, bytes = 0, stream = 0;
    const absl::string_view pointer_text = row.text[places_[kPointer]];
    if (pointer_text != "(nil)" && !ReadHexNumber(pointer_text, pointer)) {
      return Bad(row, places_[kPointer], absl::StrCat(Quoted(pointer_text), " is no pointer, such as 0x7f0a00000000"));
    }
    const absl::string_view size_text = row.text[places_[kBytesAsked]];
    if (!ReadWholeNumber(size_text, 10, bytes) || bytes > kMostRmmBytes) {
      return Bad(row, places_[kBytesAsked],
                 absl::StrCat(Quoted(size_text), " is no number of bytes from 0 to 2^63 - 1"));
    }
    if (places_[kStreamHandle] != kMostRmmFields && !ReadHexNumber(row.text[places_[kStreamHandle]], stream)) {
      return Bad(row, places_[kStreamHandle],
                 absl::StrCat(Quoted(row.text[places_[kStreamHandle]]), " is no stream, such as 0 or 0x55e0c8a2b010"));
    }
    const absl::string_view action = row.text[places_[kActionName]];
    if (action == "allocate") {
      Allocate(pointer, bytes, Stream{stream});
    } else if (action == "free") {
      Free(pointer, bytes);
    } else if (action == "allocate failure") {
      ++failed_;
    } else {
      return Bad(row, places_[kActionName],
                 absl::StrCat(Quoted(action), " is none of allocate, free, allocate failure"));
    }
    return absl::OkStatus();
  }

  void Allocate(std::uint64_t pointer, std::uint64_t bytes, Stream stream) {
    if (bytes == 0) {
      ++empty_;
      return;
    }
    const auto [known, is_new] = live_.try_emplace(pointer, id_count_);
    if (!is_new) {
      ++lost_frees_;
      requests_.Add({.id = known->second, .kind = trace::OpKind::kFree});
      known->second = id_count_;
    }
    requests_.Add({.bytes = bytes, .stream = stream, .id = id_count_++, .kind = trace::OpKind::kAlloc});
  }

  void Free(std::uint64_t pointer, std::uint64_t bytes) {
    const auto known = live_.find(pointer);
    if (known == live_.end()) {
      unknown_frees_ += bytes == 0 ? 0 : 1;  // of an empty request
      return;
    }
    requests_.Add({.id = known->second, .kind = trace::OpKind::kFree});
    live_.erase(known);
  }

  std::string Source() const {
    std::string out;
    for (const auto& [count, one, many] :
         {std::tuple(failed_, kOneFailed.data(), kManyFailed.data()),
          std::tuple(empty_, " request for 0 bytes left out", " requests for 0 bytes left out"),
          std::tuple(unknown_frees_, " free of an unknown pointer left out", " frees of unknown pointers left out"),
          std::tuple(lost_frees_, " missing free added", " missing frees added"),
          std::tuple(cut_, " line that was cut off left out", " lines that were cut off left out")}) {
      if (count > 0) absl::StrAppend(&out, out.empty() ? "" : ", ", FormatCount(count), count == 1 ? one : many);
    }
    return out.empty() ? "RMM log" : absl::StrCat("RMM log (", out, ")");
  }

  trace::RequestWindow requests_;
  std::uint32_t id_count_ = 0;
  RmmPlaces places_{};
  absl::flat_hash_map<std::uint64_t, std::uint32_t> live_;  // pointer to id
  std::size_t fields_ = 0;
  std::size_t line_ = 1;
  std::uint64_t failed_ = 0, empty_ = 0, unknown_frees_ = 0, lost_frees_ = 0, cut_ = 0;
};

}  // namespace

bool IsRmmLog(absl::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  bool is_whole = true;
  return HasRmmColumns(RmmPlacesOf(SplitRmmRow(TakeRmmLine(text, is_whole))));
}

absl::string_view FailedInRmmLog(const trace::RequestTrace& trace) {
  absl::string_view text = trace.source;
  if (!absl::ConsumePrefix(&text, "RMM log (")) return "";
  text = text.substr(0, text.find_first_not_of("0123456789,"));
  const absl::string_view words = absl::string_view(trace.source).substr(9 + text.size());
  const bool is_one = absl::StartsWith(words, kOneFailed);
  if (!is_one && !absl::StartsWith(words, kManyFailed)) return "";
  const std::size_t size = text.size() + (is_one ? kOneFailed : kManyFailed).size() - kLeftOut.size();
  return absl::string_view(trace.source).substr(9, size);
}

absl::StatusOr<trace::RequestTrace> ReadRmmLog(absl::string_view text, const ReadLimits& limits) {
  return RmmLogReader(limits).Read(text);
}

namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kMicrosPerDay = 24 * 60 * 60 * kMicrosPerSecond;

absl::string_view NameOf(RmmAction action) {
  switch (action) {
    case RmmAction::kAllocate:
      return "allocate";
    case RmmAction::kFree:
      return "free";
    case RmmAction::kAllocateFailure:
      return "allocate failure";
  }
  return "";
}

// As printf's %p.
std::string PointerText(std::uint64_t address) { return address == 0 ? "(nil)" : absl::StrFormat("0x%x", address); }

// As a C++ stream prints a pointer.
std::string StreamText(std::uint64_t handle) { return handle == 0 ? "0" : absl::StrFormat("0x%x", handle); }

}  // namespace

RmmLogWriter::RmmLogWriter(ByteSink& out) : out_(out) { out_.Append("Thread,Time,Action,Pointer,Size,Stream\n"); }

void RmmLogWriter::Write(const RmmCall& call) {
  const std::int64_t of_day = ((call.time_us % kMicrosPerDay) + kMicrosPerDay) % kMicrosPerDay;
  const std::int64_t seconds = of_day / kMicrosPerSecond;
  out_.Append(absl::StrFormat("1,%02d:%02d:%02d.%06d,%s,%s,%d,%s\n", seconds / 3600, seconds / 60 % 60, seconds % 60,
                              of_day % kMicrosPerSecond, NameOf(call.action), PointerText(call.address), call.bytes,
                              StreamText(Handle(call.stream))));
}

}  // namespace ashlar::formats
