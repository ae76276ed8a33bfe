// Out-of-memory messages as people paste them: PyTorch 0.4 to 2.15 (CUDA, HIP, XPU, NPU, MPS) and the libraries it
// calls, the memory of the host, frameworks, serving engines, native libraries (oom_message_table.cc), and our
// allocator. A text may hold several, inside a log or a traceback, wrapped over lines, or cut.
//
// Contract: any bytes are accepted and nothing aborts; a figure that a message does not tell stays nullopt, never 0; a
// figure that cannot be true is named in `notes` and not stored. Sizes are bytes; MB and GB as these programs print
// them are binary. Pure functions, safe from any thread.
//
// A printed number is an interval, half a unit of its last digit either side, both ends included:
//   "12.32 GiB"  ->  [12.315 GiB, 12.325 GiB]        "0 bytes"  ->  [0, 0]
//
// Example:
//   for (const OomMessage& message : FindOomMessages(log)) {
//     if (message.free) Print(message.free->printed);  // "835.88 MiB"
//   }
#ifndef ASHLAR_ANALYZER_FORMATS_OOM_OOM_MESSAGE_H_
#define ASHLAR_ANALYZER_FORMATS_OOM_OOM_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::formats {

// The Python traceback that a log prints right before an out-of-memory message.
//
//   const std::vector<TracebackLine> lines = TracebackBefore(log, message.byte_offset);
//   lines.back().frame.file;   // the innermost
//
// Tracebacks of Python, IPython and rich; in a log in JSON lines as well. What stands before each line (a rank, a host,
// a container, a time) is taken off, and lines that begin otherwise are passed over: they are of other ranks. Empty
// where no traceback ends at the message, or where two are mixed. Pure function; text is turned into valid UTF-8.
struct TracebackLine {
  trace::Frame frame;
  std::string code;  // the source line as printed; empty where it is not
};

// Outermost first, as Python prints them; the last kMostTracebackLines.
inline constexpr std::size_t kMostTracebackLines = 256;
std::vector<TracebackLine> TracebackBefore(absl::string_view text, std::size_t message_offset,
                                           bool* is_mixed = nullptr);

// The bytes that a printed number can stand for: low_bytes <= true value <= high_bytes.
struct Figure {
  std::uint64_t low_bytes = 0;
  std::uint64_t high_bytes = 0;
  std::string printed;  // as in the text, white space collapsed; "a + b" where it is a sum of two printed figures

  std::uint64_t MiddleBytes() const { return low_bytes + (high_bytes - low_bytes) / 2; }
  // As printed; a plain number of bytes with a unit that people read: "128.00 MiB".
  std::string InWords() const;
};

// A figure that only one family has ("rounded to", "total fragmentation").
struct NamedFigure {
  std::string name;
  Figure figure;
};

// "Process 20398 has 14.52 GiB memory in use", "this process has ...". Inside a container a process sees itself under
// a foreign number, so a named process may be the failing one.
struct ProcessUse {
  bool is_this_process = false;
  std::optional<std::int64_t> pid;
  std::optional<int> device;   // nullopt: the message's
  std::optional<Figure> used;  // nullopt: not told, or told as a number that cannot be true
};

struct OomMessage {
  // PyTorch: pt-cached (0.4 to 1.3), pt-reserved, pt-reserved-allowed, pt-reserved-hint (1.4 to 2.0), pt-capacty-typo
  // (2.1, 2.2), pt-capacity, pt-capacity-private-pools, pt-capacity-allowed, pt-alloc-conf-renamed, pt-hip, pt-xpu,
  // pt-npu, pt-mps, pt-pre-1.0, pt-plain, pt-warning (of its allocator, 2.13 on), pt-async (over cudaMallocAsync),
  // pt-nvml. Others: tf-bfc, jax-xla, cupy, rmm, paddle, ggml, numba, cuda-library (cuBLAS and its like), cudnn, nccl,
  // vllm, ashlar (our own), and those of oom_message_table.cc.
  std::string family;
  std::size_t byte_offset = 0;  // of the first byte recognised, in the text given
  std::size_t end_offset = 0;   // one past the last
  bool truncated = false;       // the beginning or the end of the message is missing, as far as can be seen

  std::optional<int> device;
  std::optional<Figure> tried;      // "Tried to allocate": for PyTorch the size of the new segment, not the request
  std::optional<Figure> total;      // capacity of the device
  std::optional<Figure> allocated;  // as printed; where private_pool is told, its free blocks are counted in
  std::optional<Figure> active;     // NPU "current active"
  std::optional<Figure> free;       // what the device reported as free
  std::optional<Figure> reserved;   // as printed, or allocated + unallocated_reserved
  std::optional<Figure> unallocated_reserved;  // "reserved by PyTorch but unallocated"; "cached" in 0.4 to 1.3
  // "allocated in private pools (e.g., CUDA Graphs)": PyTorch sums the FREE blocks of its private pools here.
  std::optional<Figure> private_pool;
  std::optional<Figure> limit;         // "2.37 GiB allowed", "max allowed", "limit set to"
  std::optional<Figure> other_in_use;  // MPS "other allocations": this process's, outside the allocator
  std::vector<ProcessUse> processes;   // in the order told
  std::string advised;                 // the setting that the message itself advises; empty: none
  std::vector<NamedFigure> details;
  std::vector<trace::Note> notes;
  std::vector<TracebackLine> traceback;    // that ends at this message, outermost first
  std::vector<std::size_t> told_again_at;  // byte offsets of what else told of this failure, and is joined to it
  std::uint64_t told = 1;                  // how often, where warnings that nothing follows are joined
  bool is_chained = false;                 // it was raised while the message before was handled

  const Figure* Detail(absl::string_view name) const;  // nullptr: not told
  const trace::Note* FindNote(absl::string_view name) const;
  // Adds one to the note of this name, or begins it.
  void AddNote(absl::string_view name, absl::string_view message);
};

// Every message in `text`, in its order; they do not overlap.
std::vector<OomMessage> FindOomMessages(absl::string_view text);

// Of a text in which it finds none: the first line that says in words of its own that the memory of a device ran out,
// as programs print it that no row here knows (family "own-words", and a note with the line).
std::optional<OomMessage> FindInOwnWords(absl::string_view text);

// Whether FindOomMessages would find any.
bool LooksLikeOomMessage(absl::string_view text);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_OOM_OOM_MESSAGE_H_
