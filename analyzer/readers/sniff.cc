#include "analyzer/readers/sniff.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "allocator/trace/codec.h"
#include "analyzer/readers/native/native_log.h"
#include "analyzer/readers/plain/minimalloc_csv.h"

namespace ashlar::readers {
namespace {

constexpr absl::string_view kSpace = " \t\r\n";

bool IsBinaryPickle(absl::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 0 && bytes[1] <= 5;
}

// Protocol 0 starts a container with "(lp0\n", "(dp0\n"; protocol 1 with "]q\0", "}q\0" or "(lq\0"; a class comes
// first as "ccopy_reg\n".
bool IsTextPickle(absl::string_view bytes) {
  for (absl::string_view start : {"(lp", "(dp", "(tp", "(lq", "(dq", "]q", "}q", "ccopy_reg\n", "c__builtin__\n"}) {
    if (absl::StartsWith(bytes, start)) return bytes.find('.') != absl::string_view::npos;
  }
  return false;
}

absl::string_view TakeLine(absl::string_view* bytes) {
  const std::size_t end = bytes->find('\n');
  const absl::string_view line = bytes->substr(0, end);
  bytes->remove_prefix(end == absl::string_view::npos ? bytes->size() : end + 1);
  return absl::StripAsciiWhitespace(line);
}

// The letter alone (y, e), or the letter, one blank and a digit.
bool IsTraceLine(absl::string_view line) {
  const char letter = line[0];
  if (letter == 'y' || letter == 'e') return line.size() == 1;
  if (letter != 'a' && letter != 'f' && letter != 'r' && letter != 'S' && letter != 'c') return false;
  return line.size() >= 3 && line[1] == ' ' && absl::ascii_isdigit(static_cast<unsigned char>(line[2]));
}

bool IsPlainTrace(absl::string_view bytes) {
  while (!bytes.empty()) {
    const absl::string_view line = TakeLine(&bytes);
    if (!line.empty() && line[0] != '#') return IsTraceLine(line);
  }
  return false;
}

bool IsOomText(absl::string_view bytes) {
  for (absl::string_view sign : {"out of memory", "OutOfMemoryError", "Tried to allocate", "OUT_OF_MEMORY",
                                 "Out of memory", "out_of_memory", "cudaErrorMemoryAllocation"}) {
    if (absl::StrContains(bytes, sign)) return true;
  }
  return false;
}

bool IsJsonObject(absl::string_view text) {
  if (text.empty() || text[0] != '{') return false;
  const std::size_t next = text.find_first_not_of(kSpace, 1);
  return next != absl::string_view::npos && (text[next] == '"' || text[next] == '}');
}

}  // namespace

InputKind Sniff(absl::string_view bytes) {
  const std::size_t start = bytes.find_first_not_of(kSpace);
  if (start == absl::string_view::npos) return InputKind::kEmpty;
  if (IsBinaryPickle(bytes)) return InputKind::kPickle;
  if (trace::IsRecording(bytes)) return InputKind::kRecording;
  if (IsNativeLog(bytes)) return InputKind::kNativeLog;
  const absl::string_view text = bytes.substr(start);
  if (IsPlainTrace(text)) return InputKind::kPlainTrace;
  if (IsMinimallocCsv(text)) return InputKind::kPackingCsv;
  if (IsJsonObject(text)) return InputKind::kJson;
  if (IsOomText(text)) return InputKind::kOomText;  // before '[': "[rank0]: ... out of memory" is a log
  if (IsTextPickle(bytes)) return InputKind::kTextPickle;
  return text[0] == '[' ? InputKind::kJson : InputKind::kUnknown;
}

absl::string_view InputKindName(InputKind kind) {
  switch (kind) {
    case InputKind::kEmpty:
      return "an empty input";
    case InputKind::kPickle:
      return "a pickle (PyTorch snapshot)";
    case InputKind::kTextPickle:
      return "a pickle of protocol 0 or 1";
    case InputKind::kRecording:
      return "a recording";
    case InputKind::kNativeLog:
      return "a log of device calls";
    case InputKind::kPlainTrace:
      return "a plain request trace";
    case InputKind::kPackingCsv:
      return "a packing problem (CSV)";
    case InputKind::kOomText:
      return "an out-of-memory message";
    case InputKind::kJson:
      return "JSON";
    case InputKind::kUnknown:
      return "an unknown format";
  }
  return "an unknown format";
}

}  // namespace ashlar::readers
