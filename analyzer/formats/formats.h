// The table of formats that inputs come in. A row has the format's name for people, how its content is recognised
// (never the file name), and its reader.
//
//   const Format& format = FormatOf(bytes);
//   if (format.read != nullptr) ReadContent content = format.read(bytes, {});
//
// To add one: write its reader in a room of its own, and add its kind here and its row in formats.cc. Pure functions,
// safe from any thread.
#ifndef ASHLAR_ANALYZER_FORMATS_FORMATS_H_
#define ASHLAR_ANALYZER_FORMATS_FORMATS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/oom/oom_message.h"
#include "analyzer/formats/plain/minimalloc_csv.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

enum class InputKind : std::uint8_t {
  kEmpty,
  kPickle,         // protocol 2 or later: perhaps a PyTorch snapshot
  kTextPickle,     // protocol 0 or 1: nothing we read writes it
  kRecording,      // of our own (allocator/trace/codec.h)
  kNativeLog,      // of libashlar_record.so (native/native_log.h)
  kPlainTrace,     // "a 1 512 0" lines
  kChromeTrace,    // of torch.profiler (json/chrome_trace.h)
  kMemoryProfile,  // pprof, of JAX (pprof/memory_profile.h)
  kDatabase,       // SQLite, of Nsight Systems (native/nsys_database.h)
  kRmmLog,         // of RMM's logging_resource_adaptor (rmm/rmm_log.h)
  kPackingCsv,     // "id,lower,upper,size": a packing problem
  kBinary,         // no text, and none of those before
  kOomText,        // an out-of-memory message, or a log that holds one
  kJson,
  kUnknown,
};

// What is in an input, whatever its format.
using Content = std::variant<trace::Snapshot, trace::RequestTrace, PackingProblem, std::vector<OomMessage>>;
using ReadContent = absl::StatusOr<std::unique_ptr<const Content>>;

// Which of them; kNothing: no reader knows the format.
enum class Holds : std::uint8_t { kSnapshot, kRequests, kProblem, kMessages, kNothing };

struct Format {
  InputKind kind;
  absl::string_view name;
  Holds holds;
  bool (*is_it)(absl::string_view bytes);  // nullptr: told by `begins`
  // nullptr where it holds messages, which any text may, or nothing.
  ReadContent (*read)(absl::string_view bytes, const ReadLimits& limits);
  absl::string_view begins = {};  // what stands at byte `at`, letters of either case
  std::size_t at = 0;
};

// The first of the table that it is; the last takes anything.
const Format& FormatOf(absl::string_view bytes);

InputKind Sniff(absl::string_view bytes);

// Whether nothing that follows such a head (the first kHeadBytes of an input, or all of it) could make it an input that
// is known here: it is binary, of no known format.
bool IsUnknownBinary(absl::string_view head);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_FORMATS_H_
