// device_traces: one list of entries per device, and external_annotations.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analyzer/readers/torch/torch_context.h"
#include "analyzer/readers/torch/torch_print.h"
#include "analyzer/readers/torch/torch_record.h"
#include "analyzer/readers/torch/torch_stream.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {
namespace {

using pickle::Kind;
using pickle::Value;
using trace::Action;
using trace::Event;

constexpr RecordKind kEntry = {
    "trace entries",
    FieldSet({Field::kAction, Field::kAddr, Field::kDeviceFree, Field::kSize, Field::kStream, Field::kTimeUs,
              Field::kFrames, Field::kCompileContext, Field::kUserMetadata, Field::kInternalMetadata, Field::kPoolId})};
constexpr RecordKind kAnnotation = {"external_annotations",
                                    FieldSet({Field::kStage, Field::kName, Field::kDevice, Field::kTimeUs})};

// Must the entry say where and how much? Markers need not.
bool HasPlace(Action action) {
  return action != Action::kOom && action != Action::kSnapshot && action != Action::kAnnotate &&
         action != Action::kUnknown;
}

absl::Status ReadAction(const Record& record, TorchContext* context, Event* event) {
  absl::string_view name;
  if (absl::Status status = record.GetText(Field::kAction, &name); !status.ok()) return status;
  event->action = trace::ParseAction(name).value_or(Action::kUnknown);
  if (event->action == Action::kUnknown) {
    context->notes.Add("unknown_action", absl::StrCat("trace entries have the action ", Quoted(name),
                                                      ", which this version does not know; they are kept as unknown"));
  }
  return absl::OkStatus();
}

// oom entries have the device's free bytes in device_free; before that key existed, in addr.
absl::Status ReadAddress(const Record& record, Event* event) {
  const bool is_free_bytes = event->action == Action::kOom && record.Has(Field::kDeviceFree);
  const Field field = is_free_bytes ? Field::kDeviceFree : Field::kAddr;
  if (!record.Has(field) && !HasPlace(event->action)) return absl::OkStatus();
  return record.GetSize(field, &event->address);
}

absl::Status ReadSizeAndStream(const Record& record, TorchContext* context, Event* event) {
  if (record.Has(Field::kSize) || HasPlace(event->action) || event->action == Action::kOom) {
    if (absl::Status status = record.GetSize(Field::kSize, &event->size_bytes); !status.ok()) return status;
  }
  if (!record.Has(Field::kStream)) {
    if (HasPlace(event->action)) {
      context->notes.Add("missing_stream", "trace entries do not name their stream; it is taken as 0");
    }
    return absl::OkStatus();
  }
  std::uint64_t stream = 0;
  absl::Status status = record.GetHandle(Field::kStream, &stream);
  event->stream = Stream{stream};
  return status;
}

// The text of a label; what is no text is printed.
std::string LabelText(const Record& record, Field field, TorchContext* context) {
  const Value* value = record.Find(field);
  if (value == nullptr || value->kind() == Kind::kNone) return "";
  if (value->kind() == Kind::kString) return ToUtf8(context->document.Text(*value));
  return PrintValue(context->document, *value);
}

// What tells a label's text from another while the document has it: its number, +1.
std::uint64_t NumberOf(const Value* text) {
  if (text == nullptr) return 0;
  return text->kind() == Kind::kString ? text->payload() + 1 : TorchContext::kNoNumber;
}

void ReadLabel(const Record& record, TorchContext* context, Event* event) {
  context->seen.has_compile_context |= record.Has(Field::kCompileContext);
  context->snapshot.traits.has_labels |= record.Has(Field::kUserMetadata);
  const TorchContext::LabelTexts texts = {NumberOf(record.Find(Field::kUserMetadata)),
                                          NumberOf(record.Find(Field::kInternalMetadata)),
                                          NumberOf(record.Find(Field::kCompileContext))};
  if (texts == context->last_label_texts) {
    event->label = context->last_label;
    return;
  }
  event->label = InternLabel({.user_metadata = LabelText(record, Field::kUserMetadata, context),
                              .internal_metadata = LabelText(record, Field::kInternalMetadata, context),
                              .compile_context = LabelText(record, Field::kCompileContext, context)},
                             context);
  const bool has_numbers = std::find(texts.begin(), texts.end(), TorchContext::kNoNumber) == texts.end();
  context->last_label_texts = has_numbers ? texts : TorchContext::kNoTexts;
  context->last_label = event->label;
}

absl::Status ReadExtras(const Record& record, TorchContext* context, Event* event) {
  if (record.Has(Field::kTimeUs)) {
    if (absl::Status status = record.GetSigned(Field::kTimeUs, &event->time_us); !status.ok()) return status;
    context->snapshot.traits.has_time = true;
  }
  if (const Value* frames = record.Find(Field::kFrames); frames != nullptr) {
    if (absl::Status status = context->stacks.Read(*frames, &event->stack); !status.ok()) return status;
    context->snapshot.traits.has_stacks |= event->stack != trace::kNoStack;
  }
  if (const Value* pool = record.Find(Field::kPoolId); pool != nullptr && pool->kind() != Kind::kNone) {
    PoolId id;
    if (absl::Status status = record.GetPool(Field::kPoolId, &id); !status.ok()) return status;
    if (!trace::EventPool::CanHold(id)) return record.Wrong(Field::kPoolId, "one of fewer pools");
    event->pool = id;
    context->snapshot.traits.has_pool_ids = true;
  }
  if (record.Has(Field::kCompileContext) || record.Has(Field::kUserMetadata) || record.Has(Field::kInternalMetadata)) {
    ReadLabel(record, context, event);
  }
  return absl::OkStatus();
}

absl::Status ReadTrace(const Value& trace, TorchContext* context, std::vector<Event>* events) {
  if (trace.kind() != Kind::kList) return ExpectKind(trace, Kind::kList);
  if (absl::Status status = context->Visit(trace); !status.ok()) return status;
  events->reserve(context->document.Size(trace));
  pickle::ItemCursor items = context->document.Items(trace);
  while (const Value* entry = items.Next()) {
    absl::Status status = ReadEntry(*entry, context, &events->emplace_back());
    if (!status.ok()) {
      status = absl::Status(status.code(), absl::StrCat("[", events->size() - 1, "]: ", status.message()));
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadAnnotation(const Value& value, TorchContext* context, trace::Annotation* annotation) {
  if (value.kind() != Kind::kDict) return ExpectKind(value, Kind::kDict);
  const Record record(context->document, value, kAnnotation, &context->names, &context->notes);
  absl::string_view stage, name;
  std::uint64_t device = 0;
  absl::Status status = record.GetText(Field::kStage, &stage);
  if (status.ok()) status = record.GetText(Field::kName, &name);
  if (status.ok()) status = record.GetSize(Field::kDevice, &device);
  if (status.ok()) status = record.GetSigned(Field::kTimeUs, &annotation->time_us);
  if (status.ok() && device > kMaxDevice) status = record.Wrong(Field::kDevice, "a device number");
  annotation->stage = ToUtf8(stage);
  annotation->name = ToUtf8(name);
  annotation->device = static_cast<int>(device);
  return status;
}

}  // namespace

trace::LabelId InternLabel(trace::Label label, TorchContext* context) {
  if (label.compile_context == "N/A") label.compile_context.clear();  // what PyTorch writes where nothing is compiled
  return context->snapshot.labels.Intern(label);
}

absl::Status ReadEntry(const Value& entry, TorchContext* context, Event* event) {
  if (entry.kind() != Kind::kDict) return ExpectKind(entry, Kind::kDict);
  const Record record(context->document, entry, kEntry, &context->names, &context->notes);
  event->file_byte = static_cast<std::uint32_t>(std::min<std::uint64_t>(entry.offset(), trace::kNoByte));
  absl::Status status = ReadAction(record, context, event);
  if (status.ok()) status = ReadAddress(record, event);
  if (status.ok()) status = ReadSizeAndStream(record, context, event);
  if (status.ok()) status = ReadExtras(record, context, event);
  return status;
}

absl::Status ReadDeviceTraces(const Value& traces, TorchContext* context) {
  if (traces.kind() != Kind::kList) return Within("device_traces", ExpectKind(traces, Kind::kList));
  if (absl::Status status = context->Visit(traces); !status.ok()) return Within("device_traces", status);
  context->seen.has_traces = true;
  pickle::ItemCursor items = context->document.Items(traces);
  std::vector<trace::EventList>& out = context->snapshot.device_traces;
  while (const Value* trace = items.Next()) {
    if (context->stream != nullptr && trace->kind() == Kind::kList && context->document.IsStreamedList(*trace)) {
      out.push_back(context->stream->TakeNext(*trace, out.size()));
      continue;
    }
    absl::Status status = ReadTrace(*trace, context, &out.emplace_back().Mutable());
    if (status.ok()) continue;
    const absl::string_view join = absl::string_view(status.message()).substr(0, 1) == "[" ? "" : ": ";
    return absl::Status(status.code(), absl::StrCat("device_traces[", out.size() - 1, "]", join, status.message()));
  }
  return absl::OkStatus();
}

void ReadHostTraces(const Value& traces, TorchContext* context) {
  std::vector<Event>& events = context->snapshot.host.events.Mutable();
  absl::Status status;
  // One list of entries, or, should a release write it as device_traces, one for each device.
  const bool is_nested = traces.kind() == Kind::kList && context->document.Size(traces) > 0 &&
                         context->document.Items(traces).Next()->kind() == Kind::kList;
  if (!is_nested) status = ReadTrace(traces, context, &events);
  if (is_nested) {
    pickle::ItemCursor items = context->document.Items(traces);
    while (const Value* trace = items.Next()) status.Update(ReadTrace(*trace, context, &events));
  }
  if (status.ok()) return;
  events.clear();
  context->notes.Add("host_traces", absl::StrCat("host_traces", status.message().substr(0, 1) == "[" ? "" : ": ",
                                                 status.message(), "; the history of pinned host memory is not shown"));
}

absl::Status ReadAnnotations(const Value& annotations, TorchContext* context) {
  if (annotations.kind() != Kind::kList) return Within("external_annotations", ExpectKind(annotations, Kind::kList));
  if (absl::Status status = context->Visit(annotations); !status.ok()) return Within("external_annotations", status);
  context->seen.has_annotations = true;
  pickle::ItemCursor items = context->document.Items(annotations);
  std::vector<trace::Annotation>& out = context->snapshot.annotations;
  while (const Value* annotation = items.Next()) {
    absl::Status status = ReadAnnotation(*annotation, context, &out.emplace_back());
    if (!status.ok()) return Within(absl::StrCat("external_annotations[", out.size() - 1, "]"), status);
  }
  return absl::OkStatus();
}

}  // namespace ashlar::readers
