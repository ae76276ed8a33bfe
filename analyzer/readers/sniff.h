// What kind of input a byte string is, told from its content, never from a file name.
#ifndef ASHLAR_ANALYZER_READERS_SNIFF_H_
#define ASHLAR_ANALYZER_READERS_SNIFF_H_

#include "absl/strings/string_view.h"

namespace ashlar::readers {

enum class InputKind {
  kEmpty,
  kPickle,      // protocol 2 or later: perhaps a PyTorch snapshot
  kTextPickle,  // protocol 0 or 1: nothing we read writes it
  kRecording,   // of our own (allocator/trace/codec.h)
  kNativeLog,   // of libashlar_record.so (native_log.h)
  kPlainTrace,  // "a 1 512 0" lines
  kPackingCsv,  // "id,lower,upper,size": a packing problem
  kOomText,     // an out-of-memory message, or a log that holds one
  kJson,
  kUnknown,
};

InputKind Sniff(absl::string_view bytes);

// For messages: "a PyTorch snapshot (pickle)", "a plain request trace", ...
absl::string_view InputKindName(InputKind kind);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_SNIFF_H_
