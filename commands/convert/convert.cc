#include "commands/convert/convert.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/trace/codec.h"
#include "analyzer/analyses/state/timeline_blocks.h"
#include "analyzer/formats/plain/minimalloc_csv.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/request_replay.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

// Has what the format does not carry counted in a note.
void NoteLoss(std::uint64_t count, absl::string_view message, ConversionNotes& out) {
  if (count > 0) out.push_back({"", std::string(message), count});
}

// Lifetimes as requests, in the order of their times; what ends at a time makes room for what begins there.
trace::RequestTrace RequestsOf(const formats::PackingProblem& problem) {
  struct Edge {
    std::int64_t time;
    bool is_begin;
    std::uint32_t id;
  };
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    edges.push_back({problem.buffers[i].lower, true, static_cast<std::uint32_t>(i)});
    edges.push_back({problem.buffers[i].upper, false, static_cast<std::uint32_t>(i)});
  }
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.time, a.is_begin) < std::pair(b.time, b.is_begin);
  });
  trace::RequestTrace out;
  out.id_count = static_cast<std::uint32_t>(problem.buffers.size());
  for (const Edge& edge : edges) {
    out.requests.push_back({.bytes = edge.is_begin ? problem.buffers[edge.id].size : 0,
                            .id = edge.id,
                            .kind = edge.is_begin ? trace::OpKind::kAlloc : trace::OpKind::kFree});
  }
  return out;
}

std::uint64_t EventsOfOthers(const trace::Snapshot& snapshot, int device) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < snapshot.device_traces.size(); ++i) {
    if (static_cast<int>(i) != device) count += snapshot.device_traces[i].size();
  }
  return count;
}

void NoteOneDevice(const trace::Snapshot& snapshot, int device, ConversionNotes& out) {
  NoteLoss(EventsOfOthers(snapshot, device), "events of other devices: choose one with --device", out);
  NoteLoss(snapshot.stacks.stack_count(), "call stacks", out);
  NoteLoss(snapshot.annotations.size(), "marks of the program", out);
  NoteLoss(snapshot.holders.has_value() ? snapshot.holders->holders.size() : 0, "names of who holds the memory", out);
}

absl::StatusOr<ConversionNotes> SnapshotToTrace(const trace::Snapshot& snapshot, const ReplaySettings& settings,
                                                ByteSink& out) {
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  const formats::PlainTraceLosses lost = formats::WritePlainTrace(run->recorded.program.requests, out);
  ConversionNotes notes;
  NoteOneDevice(snapshot, run->device, notes);
  NoteLoss(run->timeline.oom_events().size(),
           "failed requests, written as ordinary ones: whether they fail is up to what replays them", notes);
  NoteLoss(static_cast<std::uint64_t>(run->timeline.event_count()),
           "events, of which the requests are written: no times, segments, addresses and limits", notes);
  NoteLoss(lost.pool_requests,
           "requests in private pools, written as if in the default pool; what emptied one is left out", notes);
  NoteLoss(lost.stream_syncs, "frees that waited for one stream, written as done when the whole device is (y)", notes);
  NoteLoss(run->recorded.program.start_count, "requests for blocks older than the trace, written first", notes);
  return notes;
}

absl::StatusOr<ConversionNotes> SnapshotToCsv(const trace::Snapshot& snapshot, const ReplaySettings& settings,
                                              ByteSink& out) {
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  const analyses::BlockLifetimes lifetimes = analyses::LifetimesOf(run->timeline);
  formats::PackingProblem problem;
  for (const trace::Lifetime& lifetime : lifetimes.in_use) {
    problem.ids.push_back(absl::StrCat("b", problem.ids.size()));
    problem.buffers.push_back(lifetime);
  }
  out.Append(formats::WriteMinimallocCsv(problem));
  ConversionNotes notes;
  NoteOneDevice(snapshot, run->device, notes);
  NoteLoss(lifetimes.unknown_requests, "blocks whose request is not known, written with the block's size", notes);
  NoteLoss(problem.buffers.size(), "lifetimes are all that is written: no streams, segments, addresses and times",
           notes);
  return notes;
}

ConversionNotes WholeToPickle(const trace::Snapshot& snapshot, ByteSink& out) {
  formats::WriteTorchSnapshot(snapshot, out);
  ConversionNotes notes;
  if (!snapshot.recording.has_value()) return notes;
  std::uint64_t block_sizes = 0;
  for (const trace::EventList& events : snapshot.device_traces) {
    for (const trace::Event& event : events) block_sizes += event.block_size_bytes > 0 ? 1 : 0;
  }
  NoteLoss(block_sizes, "events whose block size the format does not carry", notes);
  NoteLoss(snapshot.recording->facts.size(), "answers and calls between events (refused growth, empty_cache, limits)",
           notes);
  NoteLoss(1, "the version of the rules and the device's memory", notes);
  return notes;
}

absl::StatusOr<ConversionNotes> SnapshotToPickle(const trace::Snapshot& snapshot, const CutRule& cut, ByteSink& out) {
  if (cut.device.has_value()) {
    if (const auto device = ChooseDevice(snapshot, cut.device); !device.ok()) return device.status();
  }
  if (!cut.device.has_value() && cut.KeepsAllBlocks()) return WholeToPickle(snapshot, out);
  const SnapshotCut smaller = CutSnapshot(snapshot, cut);
  ConversionNotes notes = WholeToPickle(smaller.snapshot, out);
  if (!cut.stack_text.empty() && !smaller.has_stack_text) {
    NoteLoss(1, absl::StrCat("no stack has the text '", cut.stack_text, "' in a frame: nothing was kept"), notes);
  }
  NoteLoss(smaller.events_gone, "events left out as asked", notes);
  NoteLoss(smaller.blocks_gone, "blocks in use at the end, left out as asked: their space is written as free", notes);
  return notes;
}

absl::StatusOr<ConversionNotes> ConvertSnapshot(const trace::Snapshot& snapshot, OutputFormat to,
                                                const ReplaySettings& settings, const CutRule& cut, ByteSink& out) {
  switch (to) {
    case OutputFormat::kRecording:
      trace::Encode(snapshot, out);
      return ConversionNotes{};
    case OutputFormat::kPickle:
      return SnapshotToPickle(snapshot, cut, out);
    case OutputFormat::kTrace:
      return SnapshotToTrace(snapshot, settings, out);
    case OutputFormat::kCsv:
      return SnapshotToCsv(snapshot, settings, out);
  }
  return absl::InternalError("no such format");
}

// A program has no events until an allocator has run it.
absl::StatusOr<ConversionNotes> ConvertRequests(const trace::RequestTrace& requests, OutputFormat to,
                                                const ReplaySettings& settings, const CutRule& cut, ByteSink& out) {
  if (to == OutputFormat::kTrace) {
    formats::WritePlainTrace(requests, out);
    return ConversionNotes{};
  }
  const absl::StatusOr<policy::Options> policy_options = whatif::OverriddenOptions(settings.overrides);
  if (!policy_options.ok()) return policy_options.status();
  replay::RequestReplayOptions replay_options{*policy_options, {}, settings.memory_fraction};
  replay_options.device.address_order = settings.segment_addresses.value_or(device::AddressOrder::kAscending);
  replay_options.device.capacity_bytes = AllocatorBytes(settings).value_or(replay::kAmpleBytes);
  const absl::StatusOr<trace::Snapshot> snapshot = replay::RecordRequests(requests, std::move(replay_options));
  if (!snapshot.ok()) return snapshot.status();
  absl::StatusOr<ConversionNotes> notes = ConvertSnapshot(*snapshot, to, settings, cut, out);
  if (notes.ok() && to != OutputFormat::kCsv) {
    NoteLoss(1, absl::StrCat("the events are those of a replay as ", policy::CompatName(policy_options->compat)),
             *notes);
  }
  return notes;
}

absl::StatusOr<ConversionNotes> ConvertProblem(const formats::PackingProblem& problem, OutputFormat to,
                                               const ReplaySettings& settings, const CutRule& cut, ByteSink& out) {
  if (to == OutputFormat::kCsv) {
    out.Append(formats::WriteMinimallocCsv(problem));
    return ConversionNotes{};
  }
  absl::StatusOr<ConversionNotes> notes = ConvertRequests(RequestsOf(problem), to, settings, cut, out);
  if (notes.ok()) NoteLoss(problem.offsets.size(), "offsets of the packing", *notes);
  return notes;
}

}  // namespace

InputRule ConvertedInputs() {
  return {.problems = true,
          .names = "a recording, a PyTorch memory snapshot, a request trace or a packing problem (CSV)"};
}

absl::StatusOr<ConversionNotes> Convert(const Input& input, OutputFormat to, const ReplaySettings& settings,
                                        const CutRule& cut, ByteSink& out) {
  if (const trace::RequestTrace* requests = input.requests(); requests != nullptr) {
    absl::StatusOr<ConversionNotes> notes = ConvertRequests(*requests, to, settings, cut, out);
    if (notes.ok()) notes->insert(notes->end(), requests->notes.begin(), requests->notes.end());
    return notes;
  }
  if (input.problem() != nullptr) return ConvertProblem(*input.problem(), to, settings, cut, out);
  if (input.snapshot() == nullptr) return absl::InvalidArgumentError("a message cannot be converted");
  absl::StatusOr<ConversionNotes> notes = ConvertSnapshot(*input.snapshot(), to, settings, cut, out);
  const std::vector<trace::Note>& of_input = input.snapshot()->notes;
  if (notes.ok()) notes->insert(notes->end(), of_input.begin(), of_input.end());
  return notes;
}

Input WithoutProblem(Input input) {
  if (input.problem() == nullptr) return input;
  return Input(std::make_unique<const formats::Content>(RequestsOf(*input.problem())));
}

}  // namespace ashlar::answers
