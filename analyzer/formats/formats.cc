#include "analyzer/formats/formats.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/json/chrome_trace.h"
#include "analyzer/formats/json/json_snapshot.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/native/native_log.h"
#include "analyzer/formats/native/nsys_database.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "analyzer/formats/pprof/memory_profile.h"
#include "analyzer/formats/rmm/rmm_log.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

constexpr absl::string_view kSpace = " \t\r\n";

absl::string_view WithoutSpaceBefore(absl::string_view bytes) {
  std::size_t space = 0;
  AnyPart(bytes, 0, [&space](absl::string_view part) {
    const std::size_t length = std::min(part.find_first_not_of(kSpace), part.size());
    space += length;
    return length < part.size();
  });
  return bytes.substr(space);
}

absl::string_view HeadOfText(absl::string_view bytes) { return WithoutSpaceBefore(bytes).substr(0, kHeadBytes); }

bool IsEmpty(absl::string_view bytes) { return WithoutSpaceBefore(bytes).empty(); }

bool IsBinaryPickle(absl::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 0 && bytes[1] <= 5;
}

// Protocol 0 starts a container with "(lp0\n", "(dp0\n"; protocol 1 with "]q\0", "}q\0" or "(lq\0"; a class comes
// first as "ccopy_reg\n".
bool IsTextPickle(absl::string_view bytes) {
  for (absl::string_view start : {"(lp", "(dp", "(tp", "(lq", "(dq", "]q", "}q", "ccopy_reg\n", "c__builtin__\n"}) {
    if (!absl::StartsWith(bytes, start)) continue;
    return absl::StrContains(bytes.substr(0, kHeadBytes), '.') || bytes.back() == '.';
  }
  return false;
}

// A line that is no remark ends at kHeadBytes: no line of a trace is as long.
absl::string_view TakeLine(absl::string_view* bytes) {
  const bool is_remark = bytes->front() == '#';
  const std::size_t end = is_remark ? bytes->find('\n') : bytes->substr(0, kHeadBytes).find('\n');
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
  absl::string_view text = WithoutSpaceBefore(bytes);
  PagesBehind behind(text.data());
  while (!text.empty()) {
    const absl::string_view line = TakeLine(&text);
    behind.ReadTo(text.data());
    if (!line.empty() && line[0] != '#') return IsTraceLine(line);
  }
  return false;
}

bool IsPackingCsv(absl::string_view bytes) { return IsMinimallocCsv(HeadOfText(bytes)); }

bool IsHeadOfRmmLog(absl::string_view bytes) { return IsRmmLog(HeadOfText(bytes)); }

bool HasOomSign(absl::string_view text) {
  for (absl::string_view sign : {"out of memory", "OutOfMemoryError", "Tried to allocate", "OUT_OF_MEMORY",
                                 "Out of memory", "out_of_memory", "cudaErrorMemoryAllocation"}) {
    if (absl::StrContains(text, sign)) return true;
  }
  return false;
}

bool IsOomText(absl::string_view bytes) {
  constexpr std::size_t kLongestSign = 32;
  return AnyPart(bytes, kLongestSign, HasOomSign);
}

// Of a terminal's log: white space, backspace, the bell, ESC, and those that move between character sets.
bool IsOfText(unsigned char c) { return c >= 0x20 ? c != 0x7f : (c >= 0x07 && c <= 0x0f) || c == 0x1b; }

// A log may hold some odd bytes, and a message beside them; what begins with a NUL or soon has one is binary.
bool IsBinary(absl::string_view bytes) {
  constexpr std::size_t kSoon = 8;
  constexpr std::ptrdiff_t kOneOf = 20;
  const absl::string_view head = bytes.substr(0, kHeadBytes);
  const std::ptrdiff_t odd = std::count_if(head.begin(), head.end(), [](unsigned char c) { return !IsOfText(c); });
  const bool is_odd = odd * kOneOf > static_cast<std::ptrdiff_t>(head.size());
  return (is_odd || absl::StrContains(head.substr(0, kSoon), '\0')) && !IsTextPickle(bytes) && !HasOomSign(head);
}

bool IsJsonObject(absl::string_view bytes) {
  const absl::string_view text = WithoutSpaceBefore(bytes);
  if (text.empty() || text[0] != '{') return false;
  const std::size_t next = text.find_first_not_of(kSpace, 1);
  return next != absl::string_view::npos && (text[next] == '"' || text[next] == '}');
}

// "[2025-05-01 ..." and "[W] ..." begin a log.
bool IsJsonArray(absl::string_view bytes) {
  absl::string_view text = WithoutSpaceBefore(bytes);
  if (!absl::ConsumePrefix(&text, "[")) return false;
  text = WithoutSpaceBefore(text);
  if (text.empty() || absl::StrContains("{[]\"", text[0])) return true;
  const std::size_t number = std::min(text.find_first_not_of("-+.0123456789eE"), text.size());
  const absl::string_view rest = WithoutSpaceBefore(text.substr(number));
  return number > 0 && (rest.empty() || rest[0] == ',' || rest[0] == ']');
}

bool IsAnything(absl::string_view /*bytes*/) { return true; }

template <typename T>
ReadContent AsContent(absl::StatusOr<T> read) {
  if (!read.ok()) return read.status();
  return std::make_unique<const Content>(std::in_place_type<T>, *std::move(read));
}

ReadContent ContentPickle(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadTorchSnapshot(bytes, limits));
}
ReadContent ContentRecording(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(trace::Decode(bytes, {.max_events = limits.max_events, .is_read = GiveBackPages}));
}
ReadContent ContentNativeLog(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadNativeLog(bytes, limits));
}
ReadContent ContentJsonSnapshot(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadJsonSnapshot(bytes, limits));
}
ReadContent ContentChromeTrace(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadChromeTrace(bytes, limits));
}
ReadContent ContentProfile(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadMemoryProfile(bytes, limits));
}
ReadContent ContentDatabase(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadNsysDatabase(bytes, limits));
}
ReadContent ContentRequests(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ParsePlainTrace(bytes, limits));
}
ReadContent ContentRmmLog(absl::string_view bytes, const ReadLimits& limits) {
  return AsContent(ReadRmmLog(bytes, limits));
}
ReadContent ContentProblem(absl::string_view bytes, const ReadLimits& /*limits*/) {
  return AsContent(ParseMinimallocCsv(bytes));
}

bool IsElf(absl::string_view bytes) {
  return absl::StartsWith(bytes,
                          "\x7f"
                          "ELF");
}

bool IsCoreDump(absl::string_view bytes) {
  constexpr std::size_t kTypeAt = 16;
  return IsElf(bytes) && bytes.size() > kTypeAt && bytes[kTypeAt] == 4;
}

// A file that people send in the place of what is read: named, with the mend where there is one.
constexpr Format Foreign(InputKind kind, absl::string_view name, absl::string_view begins, std::size_t at = 0) {
  return {kind, name, Holds::kNothing, nullptr, nullptr, begins, at};
}

constexpr absl::string_view kPicture = "a picture (give the text that it shows)";
constexpr absl::string_view kHtml = "an HTML page (a login, or the page around the file: download the raw file)";

// A text with a message comes before what begins with '[': "[rank0]: ... out of memory" is a log. Likewise a page with
// one.
constexpr Format kFormats[] = {
    {InputKind::kEmpty, "an empty input", Holds::kNothing, IsEmpty, nullptr},
    {InputKind::kPickle, "a pickle (PyTorch snapshot)", Holds::kSnapshot, IsBinaryPickle, ContentPickle},
    {InputKind::kRecording, "a recording", Holds::kSnapshot, trace::IsRecording, ContentRecording},
    {InputKind::kNativeLog, "a log of device calls", Holds::kSnapshot, IsNativeLog, ContentNativeLog},
    {InputKind::kPlainTrace, "a plain request trace", Holds::kRequests, IsPlainTrace, ContentRequests},
    {InputKind::kRmmLog, "an RMM log", Holds::kRequests, IsHeadOfRmmLog, ContentRmmLog},
    {InputKind::kPackingCsv, "a packing problem (CSV)", Holds::kProblem, IsPackingCsv, ContentProblem},
    {InputKind::kDatabase, "a database (SQLite)", Holds::kSnapshot, IsSqlite, ContentDatabase},
    {InputKind::kMemoryProfile, "a profile (pprof)", Holds::kSnapshot, IsPprof, ContentProfile},
    {InputKind::kPickle, "a snapshot as JSON", Holds::kSnapshot, IsJsonSnapshot, ContentJsonSnapshot},
    {InputKind::kChromeTrace, "a Chrome trace", Holds::kRequests, IsChromeTrace, ContentChromeTrace},
    {InputKind::kJson, "JSON", Holds::kNothing, IsJsonObject, nullptr},
    {InputKind::kBinary, "a core dump (of a program that crashed: gdb PROGRAM FILE reads it)", Holds::kNothing,
     IsCoreDump, nullptr},
    {InputKind::kBinary, "a program or a library", Holds::kNothing, IsElf, nullptr},
    Foreign(InputKind::kBinary, kPicture, "\x89PNG\r\n"),
    Foreign(InputKind::kBinary, kPicture, "\xff\xd8\xff"),
    Foreign(InputKind::kBinary, kPicture, "GIF8"),
    Foreign(InputKind::kBinary, "a PDF file (give the text of the message)", "%PDF-"),
    Foreign(InputKind::kBinary, "a bzip2 file (bunzip2 FILE unpacks it)", "BZh"),
    Foreign(InputKind::kBinary, "a 7z archive (unpack it and name a file of it)", "7z\xbc\xaf\x27\x1c"),
    Foreign(InputKind::kBinary, "a tar archive (tar -xf FILE unpacks it: name a file of it)", "ustar", 257),
    Foreign(InputKind::kBinary, "an lz4 file (lz4 -d FILE unpacks it)", "\x04\x22\x4d\x18"),
    Foreign(InputKind::kBinary, "an HDF5 file", "\x89HDF\r\n"),
    Foreign(InputKind::kBinary, "a Parquet file", "PAR1"),
    Foreign(InputKind::kBinary, "a NumPy array", "\x93NUMPY"),
    Foreign(InputKind::kBinary, "a GGUF file (weights of a model)", "GGUF"),
    Foreign(InputKind::kBinary, "a safetensors file (weights of a model)", "{\"", 8),
    {InputKind::kBinary, "a binary file of no known format", Holds::kNothing, IsBinary, nullptr},
    {InputKind::kOomText, "an out-of-memory message", Holds::kMessages, IsOomText, nullptr},
    {InputKind::kTextPickle, "a pickle of protocol 0 or 1", Holds::kSnapshot, IsTextPickle, ContentPickle},
    {InputKind::kJson, "JSON", Holds::kNothing, IsJsonArray, nullptr},
    Foreign(InputKind::kUnknown, "a pointer of Git LFS (git lfs pull fetches the file that it stands for)",
            "version https://git-lfs.github.com/spec/"),
    Foreign(InputKind::kUnknown, kHtml, "<!doctype html"),
    Foreign(InputKind::kUnknown, kHtml, "<html"),
    {InputKind::kUnknown, "an unknown format", Holds::kNothing, IsAnything, nullptr},
};

bool Is(const Format& format, absl::string_view bytes) {
  if (format.is_it != nullptr) return format.is_it(bytes);
  const absl::string_view text = format.at == 0 ? WithoutSpaceBefore(bytes) : bytes;
  return absl::StartsWithIgnoreCase(text.substr(std::min(format.at, text.size())), format.begins);
}

}  // namespace

const Format& FormatOf(absl::string_view bytes) {
  return *std::find_if(std::begin(kFormats), std::end(kFormats),
                       [bytes](const Format& format) { return Is(format, bytes); });
}

InputKind Sniff(absl::string_view bytes) { return FormatOf(bytes).kind; }

bool IsUnknownBinary(absl::string_view head) { return !HasByteOrderMark(head) && Sniff(head) == InputKind::kBinary; }

}  // namespace ashlar::formats
