#include "analyzer/readers/torch/torch_snapshot.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analyzer/readers/pickle/pickle.h"
#include "analyzer/readers/torch/torch_context.h"
#include "analyzer/readers/torch/torch_record.h"
#include "analyzer/readers/torch/torch_stream.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {

absl::Status TorchContext::Visit(const pickle::Value& list) {
  const std::uint64_t count = document.Size(list);
  if (count <= visits_left) {
    visits_left -= count;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the list made at byte ", list.offset(),
                                                 " is shared by several places; PyTorch writes one for each"));
}

namespace {

using pickle::Kind;
using pickle::Value;

constexpr RecordKind kTop = {"the top level",
                             FieldSet({Field::kSegments, Field::kDeviceTraces, Field::kAllocatorSettings,
                                       Field::kExternalAnnotations, Field::kHostSegments, Field::kHostTraces})};

absl::Status NotASnapshot(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("this pickle is not a PyTorch memory snapshot: ", why));
}

// The first few keys, to help the reader of the message recognise the file.
std::string SomeKeys(const pickle::Document& document, const Value& dict) {
  std::string keys;
  pickle::ItemCursor items = document.Items(dict);
  for (int i = 0; i < 4; ++i) {
    const Value* key = items.Next();
    if (key == nullptr) break;
    items.Next();
    absl::StrAppend(&keys, i == 0 ? "" : ", ",
                    key->kind() == Kind::kString ? Quoted(document.Text(*key)) : pickle::KindName(key->kind()));
  }
  return keys.empty() ? "it is empty" : absl::StrCat("its keys are ", keys);
}

absl::Status ReadParts(const Record& top, TorchContext* context) {
  absl::Status status;
  if (const Value* value = top.Find(Field::kSegments); value != nullptr) status = ReadSegments(*value, context);
  if (const Value* value = top.Find(Field::kDeviceTraces); status.ok() && value != nullptr) {
    status = ReadDeviceTraces(*value, context);
  }
  if (const Value* value = top.Find(Field::kAllocatorSettings); status.ok() && value != nullptr) {
    status = ReadSettings(*value, context);
  }
  if (const Value* value = top.Find(Field::kExternalAnnotations); status.ok() && value != nullptr) {
    status = ReadAnnotations(*value, context);
  }
  if (!status.ok()) return status;
  if (const Value* value = top.Find(Field::kHostSegments); value != nullptr) ReadHostSegments(*value, context);
  if (const Value* value = top.Find(Field::kHostTraces); value != nullptr) ReadHostTraces(*value, context);
  return status;
}

absl::Status ReadDict(const Value& root, TorchContext* context) {
  const Record top(context->document, root, kTop, &context->names, &context->notes);
  if (!top.Has(Field::kSegments) && !top.Has(Field::kDeviceTraces)) {
    return NotASnapshot(absl::StrCat("it is a dict without 'segments'; ", SomeKeys(context->document, root)));
  }
  for (Field field : {Field::kSegments, Field::kDeviceTraces}) {
    if (!top.Has(field)) context->notes.Add("missing_part", absl::StrCat("the file has no '", FieldName(field), "'"));
  }
  return ReadParts(top, context);
}

// Up to 1.13: the segments themselves. An empty list is the snapshot of an allocator that was never used.
absl::Status ReadList(const Value& root, TorchContext* context) {
  const Value* first = context->document.Items(root).Next();
  if (first != nullptr && first->kind() != Kind::kDict) {
    return NotASnapshot(absl::StrCat("it is a list of which the first item is ", pickle::KindName(first->kind())));
  }
  bool is_segment = first == nullptr;
  if (first != nullptr) {
    pickle::ItemCursor items = context->document.Items(*first);
    while (const Value* key = items.Next()) {
      items.Next();
      is_segment |= context->names.Of(*key) == Field::kBlocks;
    }
  }
  if (!is_segment) return NotASnapshot("it is a list of dicts that have no 'blocks'");
  context->seen.is_list = true;
  return ReadSegments(root, context);
}

std::string Generation(const TorchContext::Seen& seen, const trace::Traits& traits, bool has_blocks) {
  if (seen.is_list && seen.has_frames) return "segments alone (memory_snapshot, 2.1 on)";
  if (seen.is_list) return seen.has_history || seen.has_streams ? "segment list (1.13)" : "segment list (up to 1.12)";
  if (traits.has_host) return "host memory (2.14, 2.15)";
  if (seen.has_cache_limits) return "cache limits (2.13)";
  if (traits.has_pool_ids) return "pool ids (2.12)";
  if (traits.has_labels) return "user metadata (2.10 on)";
  if (seen.has_compile_context) return "compile context (2.7 on)";
  if (seen.has_annotations) return "annotations (2.5 on)";
  if (traits.has_settings) return "settings (2.3 on)";
  if (seen.has_history || (has_blocks && !seen.has_addresses)) return "history (2.0)";
  return has_blocks ? "frames (2.1, 2.2)" : "unknown (no blocks)";
}

void FillTraits(TorchContext* context) {
  trace::Snapshot& snapshot = context->snapshot;
  const bool has_blocks = !snapshot.segments.empty();
  snapshot.traits.has_block_addresses = context->seen.has_addresses || !has_blocks;
  snapshot.traits.generation = Generation(context->seen, snapshot.traits, has_blocks);
  if (context->document.trailing_bytes() > 0) {
    context->notes.Add("trailing_bytes", "bytes follow the end of the pickle; they were not read",
                       context->document.trailing_bytes());
  }
  snapshot.notes = context->notes.Take();
}

absl::Status ReadRoot(TorchContext* context) {
  const Value& root = context->document.root();
  if (root.kind() == Kind::kDict) return ReadDict(root, context);
  if (root.kind() == Kind::kList) return ReadList(root, context);
  return NotASnapshot(absl::StrCat("its top level is ", pickle::KindName(root.kind())));
}

absl::StatusOr<trace::Snapshot> ReadRest(TorchContext* context) {
  absl::Status status = ReadRoot(context);
  if (status.ok()) status = SortSegments(context);
  if (!status.ok()) return status;
  FillTraits(context);
  return std::move(context->snapshot);
}

}  // namespace

absl::StatusOr<trace::Snapshot> ReadTorchSnapshotStreamed(absl::string_view pickle, const ReadLimits& limits,
                                                          std::uint64_t* decoded) {
  pickle::Document document;
  TorchContext context(document);
  TraceStream stream(&context, pickle.size(), limits);
  absl::Status status = pickle::ReadStreamed(pickle, {}, FieldName(Field::kDeviceTraces), stream, document);
  if (decoded != nullptr) *decoded = stream.decoded();
  if (!status.ok()) return status;
  stream.Finish();
  absl::StatusOr<trace::Snapshot> snapshot = ReadRest(&context);
  if (snapshot.ok() && stream.IsWhole() && !document.has_missed_items()) return snapshot;
  return absl::AbortedError("to be read whole");
}

absl::StatusOr<trace::Snapshot> ReadTorchSnapshotWhole(absl::string_view pickle) {
  const absl::StatusOr<pickle::Document> document = pickle::Read(pickle);
  if (!document.ok()) return document.status();
  TorchContext context(*document);
  return ReadRest(&context);
}

absl::StatusOr<trace::Snapshot> ReadTorchSnapshot(absl::string_view pickle, const ReadLimits& limits) {
  absl::StatusOr<trace::Snapshot> streamed = ReadTorchSnapshotStreamed(pickle, limits);
  return absl::IsAborted(streamed.status()) ? ReadTorchSnapshotWhole(pickle) : streamed;
}

}  // namespace ashlar::readers
