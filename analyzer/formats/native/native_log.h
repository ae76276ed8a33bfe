// Reads what libashlar_record.so wrote of a native program (docs/guide/record.md, "The log"): its calls on device
// memory, as a snapshot whose events are those calls (trace::RecordsDeviceCalls).
//
//   absl::StatusOr<trace::Snapshot> snapshot = ReadNativeLog(bytes);
//
// A log that was cut, as by a process that was killed, gives all that is whole in it, and a note.
#ifndef ASHLAR_ANALYZER_FORMATS_NATIVE_NATIVE_LOG_H_
#define ASHLAR_ANALYZER_FORMATS_NATIVE_NATIVE_LOG_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// The rows of a log that libashlar_record.so wrote (docs/guide/record.md): one a line, fields separated by a space.
// Which fields a row has hangs on its first letter.
//
//   NativeRows rows(text);
//   for (NativeRow row; rows.Next(row);)
//     row.kind, row.numbers[2];   // 'a', the address
//
// None is held, and the pages of a mapped log are given back behind them. A line that is no row is counted, never an
// error: a process may have been killed within one.

// Positions in NativeRow::numbers, by the row's kind.
namespace native {
enum { kPid, kUnixMicroseconds };                            // of the process
enum { kFrame, kOffset };                                    // of a frame; word: the function; rest: the file
enum { kStackNumber };                                       // of a stack; rest: the frames, innermost first
enum { kTime, kDevice, kAddress, kBytes, kStream, kStack };  // of an allocation; word: the call, as of those below
enum { kFreeBytes = 3, kTotalBytes, kFailedStream, kFailedStack, kResult };  // of a failure; kTime, kDevice; 2: bytes
enum { kFreedAddress = 1, kFreedStack };                                     // of a free; kTime
enum { kDriverFree = 2, kDriverTotal };                                      // of the driver's word; kTime, kDevice
enum { kKeptResult = 2 };                                                    // of what was kept; kTime, kFreedAddress
enum { kHandle = 2, kCreatedBytes, kCreatedStack };                          // of a handle made; kTime, kDevice
enum { kMappedAddress = 1, kMappedBytes, kMappedHandle, kMappedOffset, kMappedStack };  // of a mapping; kTime
enum { kUnmappedAddress = 1, kUnmappedBytes, kUnmappedStack };                          // of its end; kTime
}  // namespace native

struct NativeRow {
  char kind = 0;
  std::array<std::uint64_t, 8> numbers = {};
  absl::string_view word = {};  // into the text
  absl::string_view rest = {};
};

class NativeRows {
 public:
  // `text` without the first line.
  explicit NativeRows(absl::string_view text) : text_(text), behind_(text.data()) {}

  // false: there is no other.
  bool Next(NativeRow& row);

  // So far:
  std::uint64_t garbled() const { return garbled_; }  // lines that are no row
  std::uint64_t unknown() const { return unknown_; }  // rows of kinds that this version does not know
  bool is_cut() const { return is_cut_; }             // the last line has no end

 private:
  bool NextLine(absl::string_view& line);

  absl::string_view text_;  // what is left
  PagesBehind behind_;
  std::uint64_t garbled_ = 0;
  std::uint64_t unknown_ = 0;
  bool is_cut_ = false;
};

// Takes the next field off; empty where there is none.
absl::string_view TakeField(absl::string_view& line);
// A whole field, "12" or "0x1f".
bool ParseNumber(absl::string_view field, std::uint64_t& value);

bool IsNativeLog(absl::string_view bytes);

// InvalidArgument, in one line: no such log, or of a version that this one does not know.
absl::StatusOr<trace::Snapshot> ReadNativeLog(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_NATIVE_NATIVE_LOG_H_
