// The state that the parts of the snapshot reader share while one file is read.
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_PARTS_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_PARTS_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/pickle/pickle_document.h"
#include "analyzer/formats/torch/torch_record.h"
#include "analyzer/formats/torch/torch_stacks.h"

namespace ashlar::formats {

// Above this a device number is damage, not a machine.
inline constexpr std::uint64_t kMaxDevice = 4095;

class TraceStream;

struct TorchContext {
  explicit TorchContext(const pickle::Document& read)
      : document(read), names(read), stacks(read, &names, &notes, &snapshot.stacks), visits_left(read.item_count()) {}
  TorchContext(const TorchContext&) = delete;
  TorchContext& operator=(const TorchContext&) = delete;

  // Called before a list's items are copied out. A file in which many places share one long list would otherwise
  // unfold to far more than its size; PyTorch writes each of these lists once.
  absl::Status Visit(const pickle::Value& list);

  // What was seen, from which the generation is named.
  struct Seen {
    bool is_list = false;        // the top level is a bare list of segments
    bool has_traces = false;     // device_traces exists
    bool has_history = false;    // blocks carry `history`
    bool has_streams = false;    // segments carry `stream`
    bool has_addresses = false;  // blocks carry `address`
    bool has_annotations = false;
    bool has_compile_context = false;
    bool has_cache_limits = false;  // allocator_settings has max_cached_size
    bool has_frames = false;        // blocks have `frames`
  };

  const pickle::Document& document;
  trace::Snapshot snapshot;
  NoteCounter notes;
  FieldNames names;
  StackReader stacks;
  std::uint64_t visits_left;
  Seen seen;
  // The last event's label, by the numbers of its texts: most events have the label of the one before.
  using LabelTexts = std::array<std::uint64_t, 3>;
  static constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};
  static constexpr LabelTexts kNoTexts = {kNoNumber, kNoNumber, kNoNumber};
  LabelTexts last_label_texts = kNoTexts;
  trace::LabelId last_label = trace::kNoLabel;
  TraceStream* stream = nullptr;  // has the entries of device_traces where they were handed out
};

// The parts. Each takes the value of its top-level key and fills context->snapshot.
absl::Status ReadSegments(const pickle::Value& segments, TorchContext* context);
absl::Status ReadDeviceTraces(const pickle::Value& traces, TorchContext* context);
// One entry of a trace.
absl::Status ReadEntry(const pickle::Value& entry, TorchContext* context, trace::Event* event);
// The label of an entry, by what it says.
trace::LabelId InternLabel(trace::Label label, TorchContext* context);
absl::Status ReadSettings(const pickle::Value& settings, TorchContext* context);
// Of pinned memory of the host, into snapshot.host. What cannot be read there is a note: the device's part stands.
void ReadHostSegments(const pickle::Value& segments, TorchContext* context);
void ReadHostTraces(const pickle::Value& traces, TorchContext* context);
absl::Status ReadAnnotations(const pickle::Value& annotations, TorchContext* context);

// Segments in order of device and address must not overlap. Sorts them.
absl::Status SortSegments(TorchContext* context);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_PARTS_H_
