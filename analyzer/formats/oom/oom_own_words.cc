// The last resort: a program whose messages no table knows, and that says in its own words that the memory of a device
// ran out. A line is one where it says both: that memory ran out, and that it was a device's.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/oom/oom_parser.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats::oom {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kMostNamed = 160;  // of a line, in the note
constexpr std::size_t kReach = 400;

constexpr absl::string_view kRanOut[] = {"out of memory", "out_of_memory", "outofmemory", "memoryallocation"};

// How the words of a line begin that is about a device.
constexpr absl::string_view kDevices[] = {"cuda", "cumem", "gpu", "hip", "rocm", "vram", "device", "cublas", "cudnn"};

bool SaysRanOut(absl::string_view lower) {
  return std::any_of(std::begin(kRanOut), std::end(kRanOut),
                     [lower](absl::string_view words) { return absl::StrContains(lower, words); });
}

// "foo.cu:12" is a file of CUDA.
bool IsOfDevice(absl::string_view word) {
  return word == "cu" || word == "cuh" ||
         std::any_of(std::begin(kDevices), std::end(kDevices),
                     [word](absl::string_view begin) { return absl::StartsWith(word, begin); });
}

bool SaysDevice(const std::string& lower) {
  std::string words = lower;
  for (char& c : words) c = absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : ' ';
  const std::vector<absl::string_view> split = absl::StrSplit(words, ' ', absl::SkipEmpty());
  return std::any_of(split.begin(), split.end(), IsOfDevice);
}

// Source text, or words that somebody quotes.
bool IsCode(absl::string_view line) {
  return line.empty() || line.back() == ';' || line.back() == '{' || absl::StartsWith(line, "//") ||
         absl::StrContains(line, '`');
}

bool IsInOwnWords(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line.substr(0, kLongestLine));
  const bool may_be = absl::StrContains(line, "emory") || absl::StrContains(line, "EMORY");
  if (!may_be || IsCode(line)) return false;
  const std::string lower = absl::AsciiStrToLower(line);
  return SaysRanOut(lower) && SaysDevice(lower);
}

// "sim.cu:212" of the line, "sim.cu(212)" as well: where in the program it was printed; empty: not told.
std::string PlaceIn(absl::string_view line) {
  for (const absl::string_view ending : {".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".hpp", ".h"}) {
    const std::size_t dot = line.find(ending);
    absl::string_view rest = line.substr(std::min(line.size(), dot == line.npos ? dot : dot + ending.size()));
    if (rest.size() < 2 || (rest.front() != ':' && rest.front() != '(')) continue;
    rest.remove_prefix(1);
    const std::string digits(rest.substr(0, rest.find_first_not_of("0123456789")));
    const std::size_t before = line.substr(0, dot).find_last_of(" \t\"'(/\\");
    if (digits.empty()) continue;
    return absl::StrCat(line.substr(before + 1, dot + ending.size() - before - 1), ":", digits);  // npos + 1: the start
  }
  return "";
}

FoundMessage Read(absl::string_view line, std::size_t offset) {
  const SqueezedText squeezed(line, offset);
  FoundMessage out = Begin("own-words", 0);
  OomMessage& message = out.message;
  message.byte_offset = offset;
  message.end_offset = offset + line.size();
  Cursor cursor(squeezed, 0);
  for (const absl::string_view words : {"allocating", "allocate", "allocationof", "requested"}) {
    if (TakeFigureAfter(cursor, words, kReach, message, message.tried)) break;
  }
  for (const absl::string_view words : {"device", "GPU"}) {
    Cursor look(squeezed, 0);
    if (message.device.has_value() || !look.SkipPast(words, kReach)) continue;
    if (const std::optional<std::int64_t> number = look.TakeInteger(); number.has_value() && *number < 1024) {
      message.device = static_cast<int>(*number);
    }
  }
  if (const std::string place = PlaceIn(line); !place.empty()) {
    message.AddNote("call_at", absl::StrCat("call_at: ", ToPrintable(place)));
  }
  message.AddNote("own_words", absl::StrCat("no message of a library known here is in this text; read was the line: ",
                                            ToPrintable(absl::StripAsciiWhitespace(line.substr(0, kMostNamed)))));
  return out;
}

}  // namespace

std::optional<OomMessage> InOwnWords(absl::string_view text) {
  PagesBehind behind(text.data());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const absl::string_view line = text.substr(at, end - at);
    if (IsInOwnWords(line) && !IsInDiff(text, at)) return Read(line, at).message;
    at = end + 1;
    behind.ReadTo(text.data() + std::min(at, text.size()));
  }
  return std::nullopt;
}

}  // namespace ashlar::formats::oom
