#include "analyzer/formats/native/native_log.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "analyzer/formats/native/device_calls.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

// Fields: n a number, w a word, r all that is left (perhaps nothing).
struct RowKind {
  char kind;
  absl::string_view fields;
};
constexpr RowKind kKinds[] = {
    {'p', "nn"},         // process: number, start in microseconds since 1970
    {'f', "nnwr"},       // frame: number, offset, function, file
    {'s', "nr"},         // stack: number, frames
    {'a', "nnnnnnw"},    // allocation: time, device, address, bytes, stream, stack, call
    {'o', "nnnnnnnwn"},  // failure: time, device, bytes, free, total, stream, stack, call, result
    {'g', "nnnn"},       // the driver's word: time, device, free, total
    {'d', "nnnw"},       // free: time, address, stack, call
    {'k', "nnn"},        // the free failed: time, address, result
    {'c', "nnnnnw"},     // memory without an address: time, device, handle, bytes, stack, call
    {'m', "nnnnnnw"},    // mapped: time, address, bytes, handle, offset, stack, call
    {'u', "nnnnw"},      // unmapped: time, address, bytes, stack, call
    {'x', "nnw"},        // everything given back: time, device, call
    {'t', "n"},          // PyTorch came: time
    {'e', "n"},          // the end: time
};

bool ReadFields(absl::string_view fields, absl::string_view line, NativeRow& row) {
  std::size_t numbers = 0;
  for (const char field : fields) {
    if (field == 'r') {
      row.rest = line;
      return true;
    }
    const absl::string_view text = TakeField(line);
    if (field == 'w') row.word = text;
    if (text.empty() || (field == 'n' && !ParseNumber(text, row.numbers[numbers++]))) return false;
  }
  return line.empty();
}

}  // namespace

absl::string_view TakeField(absl::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const absl::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

// Signed numbers come out as their bits: device -1 is the host.
bool ParseNumber(absl::string_view field, std::uint64_t& value) {
  const bool is_hex = field.substr(0, 2) == "0x";
  const bool is_negative = !is_hex && field.substr(0, 1) == "-";
  field.remove_prefix(is_hex ? 2 : is_negative ? 1 : 0);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, is_hex ? 16 : 10);
  if (is_negative) value = 0 - value;
  return error == std::errc() && end == field.data() + field.size();
}

bool NativeRows::NextLine(absl::string_view& line) {
  behind_.ReadTo(text_.data());
  const std::size_t end = std::min(text_.find('\n'), text_.size());
  line = text_.substr(0, end);
  const std::size_t unwritten = line.find('\0');  // from there on room was taken and not written to
  if (end < text_.size() && unwritten == absl::string_view::npos) {
    text_.remove_prefix(end + 1);
    return true;
  }
  is_cut_ = is_cut_ || (!line.empty() && unwritten != 0);
  text_ = {};
  return false;
}

bool NativeRows::Next(NativeRow& row) {
  for (absl::string_view line; NextLine(line);) {
    const absl::string_view kind = TakeField(line);
    const auto* known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                     [&kind](const RowKind& of) { return kind == absl::string_view(&of.kind, 1); });
    row = {};
    if (known == std::end(kKinds)) {
      ++(kind.size() == 1 ? unknown_ : garbled_);
    } else if (row.kind = known->kind; ReadFields(known->fields, line, row)) {
      return true;
    } else {
      ++garbled_;
    }
  }
  return false;
}

namespace {

constexpr absl::string_view kMagic = "ashlar-native-log ";
constexpr absl::string_view kVersion = "1";
constexpr std::uint64_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
constexpr std::size_t kLongestMangled = 4000;

// "Step(int)" of "_ZL4Stepi"; as it is where it is no C++ name.
std::string Demangled(absl::string_view name) {
  if (!absl::StartsWith(name, "_Z") || name.size() > kLongestMangled) return ToUtf8(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return text == nullptr ? ToUtf8(name) : ToUtf8(text.get());
}

class Reader {
 public:
  explicit Reader(const ReadLimits& limits) : calls_(limits.max_events) {}

  absl::StatusOr<trace::Snapshot> Run(absl::string_view text) {
    FindFailedFrees(text);
    NativeRows rows(text);
    NativeRow row;
    for (std::size_t i = 0; rows.Next(row); ++i) {
      if (failed_frees_.count(i) == 0) Read(row);
    }
    NoteRows(rows);
    calls_.Finish(out_);
    Describe();
    return std::move(out_);
  }

 private:
  // A free is written before it is made. One that failed is taken out, the last one of that address.
  void FindFailedFrees(absl::string_view text) {
    absl::flat_hash_map<std::uint64_t, std::size_t> last;
    NativeRows rows(text);
    NativeRow row;
    for (std::size_t i = 0; rows.Next(row); ++i) {
      const std::uint64_t address = row.numbers[native::kFreedAddress];
      if (row.kind == 'd' || row.kind == 'u') last[address] = i;
      if (row.kind != 'k') continue;
      if (const auto it = last.find(address); it != last.end()) failed_frees_.insert(it->second);
      calls_.Note(absl::StrCat("failed_frees_", row.numbers[native::kKeptResult]),
                  absl::StrCat("frees that CUDA answered with error ", row.numbers[native::kKeptResult],
                               ": the memory is taken as kept"));
    }
  }

  void Read(const NativeRow& row) {
    const auto& n = row.numbers;
    switch (row.kind) {
      case 'p':
        start_us_ = n[native::kUnixMicroseconds];
        return;
      case 'f':
        return ReadFrame(row);
      case 's':
        return ReadStack(row);
      case 'a':
        CountKind(row.word);
        return calls_.Allocate(CallOf(row, n[native::kStack], DeviceOf(row)), n[native::kAddress], n[native::kBytes],
                               Stream{n[native::kStream]});
      case 'o':
        return ReadFailure(row);
      case 'g':
        return ReadUsage(row);
      case 'd':
        return calls_.Free(CallOf(row, n[native::kFreedStack]), n[native::kFreedAddress]);
      default:
        return ReadVirtual(row);
    }
  }

  void ReadVirtual(const NativeRow& row) {
    const auto& n = row.numbers;
    if (row.kind == 'c') {
      calls_.Create(CallOf(row, n[native::kCreatedStack], DeviceOf(row)), n[native::kHandle], n[native::kCreatedBytes]);
    } else if (row.kind == 'm') {
      calls_.Map(CallOf(row, n[native::kMappedStack]), {n[native::kMappedAddress], n[native::kMappedBytes],
                                                        n[native::kMappedHandle], n[native::kMappedOffset]});
    } else if (row.kind == 'u') {
      calls_.Unmap(CallOf(row, n[native::kUnmappedStack]), n[native::kUnmappedAddress], n[native::kUnmappedBytes]);
    } else if (row.kind == 'x') {
      calls_.Reset({TimeOf(row), DeviceOf(row), trace::kNoStack});
    } else if (row.kind == 't') {
      calls_.Note("torch_came",
                  "PyTorch was loaded: what came after has the file that asked and no more, and memory that was given "
                  "in a stream's order is not in this log");
    }
    has_end_ = has_end_ || row.kind == 'e';
  }

  void ReadFailure(const NativeRow& row) {
    const auto& n = row.numbers;
    const std::uint64_t bytes = n[native::kFreeBytes - 1];
    if (n[native::kResult] != kOutOfMemory) {
      return calls_.Note(absl::StrCat("failed_calls_", n[native::kResult]),
                         absl::StrCat("allocations that CUDA answered with error ", n[native::kResult],
                                      ", which is not for want of memory"));
    }
    const int device = DeviceOf(row);
    calls_.Fail(CallOf(row, n[native::kFailedStack], device), bytes, n[native::kFreeBytes],
                Stream{n[native::kFailedStream]});
    if (n[native::kTotalBytes] > 0) totals_[device] = n[native::kTotalBytes];
  }

  void ReadUsage(const NativeRow& row) {
    const std::uint64_t free_bytes = row.numbers[native::kDriverFree], total = row.numbers[native::kDriverTotal];
    if (total == 0 || free_bytes > total) return;  // nobody could tell
    calls_.InUse(DeviceOf(row), total - free_bytes);
    totals_[DeviceOf(row)] = total;
  }

  void ReadFrame(const NativeRow& row) {
    const std::string function =
        row.word == "-" ? absl::StrCat("+0x", absl::Hex(row.numbers[native::kOffset])) : Demangled(row.word);
    const std::string file = row.rest.empty() ? "code made at run time" : ToUtf8(row.rest);
    frames_[row.numbers[native::kFrame]] = out_.stacks.InternFrame(file, 0, function);
  }

  void ReadStack(const NativeRow& row) {
    std::vector<trace::FrameId> frames;
    std::uint64_t frame = 0;
    for (absl::string_view rest = row.rest; !rest.empty();) {
      const bool is_number = ParseNumber(TakeField(rest), frame);
      const auto it = is_number ? frames_.find(frame) : frames_.end();
      if (it == frames_.end()) {
        ++unknown_frames_;
      } else {
        frames.push_back(it->second);
      }
    }
    if (!frames.empty()) stacks_[row.numbers[native::kStackNumber]] = out_.stacks.InternStack(frames);
  }

  DeviceCall CallOf(const NativeRow& row, std::uint64_t stack, int device = 0) const {
    const auto it = stacks_.find(stack);
    return {TimeOf(row), device, it == stacks_.end() ? trace::kNoStack : it->second};
  }
  std::int64_t TimeOf(const NativeRow& row) const {
    return static_cast<std::int64_t>(start_us_ + row.numbers[native::kTime]);
  }
  static int DeviceOf(const NativeRow& row) {
    const auto device = static_cast<std::int64_t>(row.numbers[native::kDevice]);
    const bool is_one = device >= LoggedCalls::kHost && device < LoggedCalls::kMostDevices;
    return is_one ? static_cast<int>(device) : LoggedCalls::kMostDevices;  // which no call takes
  }

  void CountKind(absl::string_view call) {
    managed_ += absl::StrContains(call, "Managed") ? 1 : 0;
    ordered_ += absl::StrContains(call, "Async") ? 1 : 0;
  }

  void NoteRows(const NativeRows& rows) {
    calls_.Note("managed_memory", "allocations of managed memory, counted as if all of it lay on the device", managed_);
    calls_.Note("stream_ordered",
                "allocations from CUDA's own memory pools, counted as asked for: a pool may hold more than that",
                ordered_);
    calls_.Note("garbled_rows", "lines of the log that are no rows, left out", rows.garbled());
    calls_.Note("unknown_rows", "rows of kinds that this version does not know, left out", rows.unknown());
    calls_.Note("unknown_frames", "frames of stacks that the log does not name, left out", unknown_frames_);
    if (rows.is_cut()) calls_.Note("cut_row", "the log ends within a row, which is left out");
    if (!has_end_) {
      calls_.Note("unfinished", "the log has no end: the process was killed, or left without its exit handlers");
    }
  }

  void Describe() {
    out_.traits.has_time = true;
    DescribeDeviceCalls(/*origin=*/"", out_);
    for (const auto& [device, bytes] : totals_) {
      out_.settings->values[trace::DeviceTotalKey(device)] = absl::StrCat(bytes);
    }
    for (const auto& [device, usage] : calls_.in_use()) {
      out_.settings->values[DeviceInUseKey(device)] = absl::StrCat(usage.in_use_bytes);
      out_.settings->values[DeviceAskedKey(device)] = absl::StrCat(usage.asked_bytes);
    }
  }

  std::set<std::size_t> failed_frees_;  // positions in the rows
  LoggedCalls calls_;
  trace::Snapshot out_;
  absl::flat_hash_map<std::uint64_t, trace::FrameId> frames_;
  absl::flat_hash_map<std::uint64_t, trace::StackId> stacks_;
  std::map<int, std::uint64_t> totals_;  // of devices, where the log says them
  std::uint64_t start_us_ = 0;
  std::uint64_t managed_ = 0, ordered_ = 0, unknown_frames_ = 0;
  bool has_end_ = false;
};

}  // namespace

bool IsNativeLog(absl::string_view bytes) { return absl::StartsWith(bytes, kMagic); }

absl::StatusOr<trace::Snapshot> ReadNativeLog(absl::string_view bytes, const ReadLimits& limits) {
  if (!IsNativeLog(bytes)) return absl::InvalidArgumentError("this is no log of device calls");
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const absl::string_view version = bytes.substr(kMagic.size(), end - kMagic.size());
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("a log of device calls of version ", ToUtf8(version.substr(0, 20)),
                                                   "; this program reads version ", kVersion, ": use a newer one"));
  }
  return Reader(limits).Run(bytes.substr(std::min(end + 1, bytes.size())));
}

}  // namespace ashlar::formats
