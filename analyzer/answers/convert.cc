#include "analyzer/answers/convert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/trace/codec.h"
#include "analyzer/analyses/state/lifetimes.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/readers/plain/minimalloc_csv.h"
#include "analyzer/readers/plain/plain_trace_writer.h"
#include "analyzer/readers/torch/torch_snapshot_writer.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/replay/recorded_snapshot.h"

namespace ashlar::answers {
namespace {

// Has what the format does not carry counted in a note.
void NoteLoss(std::uint64_t count, absl::string_view message, Converted& out) {
  if (count > 0) out.notes.push_back({"", std::string(message), count});
}

// Lifetimes as requests, in the order of their times; what ends at a time makes room for what begins there.
trace::RequestTrace RequestsOf(const readers::PackingProblem& problem) {
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

void NoteOneDevice(const trace::Snapshot& snapshot, int device, Converted& out) {
  NoteLoss(EventsOfOthers(snapshot, device), "events of other devices: choose one with --device", out);
  NoteLoss(snapshot.stacks.stack_count(), "call stacks", out);
  NoteLoss(snapshot.annotations.size(), "marks of the program", out);
}

absl::StatusOr<Converted> SnapshotToTrace(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  const readers::PlainTrace trace = readers::WritePlainTrace(run->recorded.program.requests);
  Converted out{trace.text, {}};
  NoteOneDevice(snapshot, run->device, out);
  NoteLoss(trace.pool_requests,
           "requests in private pools, written as if in the default pool; what emptied one is left out", out);
  NoteLoss(trace.stream_syncs, "frees that waited for one stream, written as done when the whole device is (y)", out);
  NoteLoss(run->recorded.program.start_count, "requests for blocks older than the trace, written first", out);
  return out;
}

absl::StatusOr<Converted> SnapshotToCsv(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  const analyses::BlockLifetimes lifetimes = analyses::LifetimesOf(run->timeline);
  readers::PackingProblem problem;
  for (const trace::Lifetime& lifetime : lifetimes.in_use) {
    problem.ids.push_back(absl::StrCat("b", problem.ids.size()));
    problem.buffers.push_back(lifetime);
  }
  Converted out{readers::WriteMinimallocCsv(problem), {}};
  NoteOneDevice(snapshot, run->device, out);
  NoteLoss(lifetimes.unknown_requests, "blocks whose request is not known, written with the block's size", out);
  NoteLoss(problem.buffers.size(), "lifetimes are all that is written: no streams, segments, addresses and times", out);
  return out;
}

Converted SnapshotToPickle(const trace::Snapshot& snapshot) {
  Converted out{readers::WriteTorchSnapshot(snapshot), {}};
  if (!snapshot.recording.has_value()) return out;
  std::uint64_t block_sizes = 0;
  for (const trace::EventList& events : snapshot.device_traces) {
    for (const trace::Event& event : events) block_sizes += event.block_size_bytes > 0 ? 1 : 0;
  }
  NoteLoss(block_sizes, "events whose block size the format does not carry", out);
  NoteLoss(snapshot.recording->facts.size(), "answers and calls between events (refused growth, empty_cache, limits)",
           out);
  NoteLoss(1, "the version of the rules and the device's memory", out);
  return out;
}

absl::StatusOr<Converted> ConvertSnapshot(const trace::Snapshot& snapshot, OutputFormat to,
                                          const ReplaySettings& settings) {
  switch (to) {
    case OutputFormat::kRecording:
      return Converted{trace::Encode(snapshot), {}};
    case OutputFormat::kPickle:
      return SnapshotToPickle(snapshot);
    case OutputFormat::kTrace:
      return SnapshotToTrace(snapshot, settings);
    case OutputFormat::kCsv:
      return SnapshotToCsv(snapshot, settings);
  }
  return absl::InternalError("no such format");
}

// A program has no events until an allocator has run it.
absl::StatusOr<Converted> ConvertRequests(const trace::RequestTrace& requests, OutputFormat to,
                                          const ReplaySettings& settings) {
  if (to == OutputFormat::kTrace) return Converted{readers::WritePlainTrace(requests).text, {}};
  const absl::StatusOr<policy::Options> policy_options = remedies::OverriddenOptions(settings.overrides);
  if (!policy_options.ok()) return policy_options.status();
  replay::RequestReplayOptions replay_options{*policy_options, {}, settings.memory_fraction};
  replay_options.device.address_order = settings.segment_addresses;
  replay_options.device.capacity_bytes = settings.capacity_bytes.value_or(replay::kAmpleBytes);
  const absl::StatusOr<trace::Snapshot> snapshot = replay::RecordRequests(requests, std::move(replay_options));
  if (!snapshot.ok()) return snapshot.status();
  absl::StatusOr<Converted> out = ConvertSnapshot(*snapshot, to, settings);
  if (out.ok() && to != OutputFormat::kCsv) {
    NoteLoss(1, absl::StrCat("the events are those of a replay as ", policy::CompatName(policy_options->compat)), *out);
  }
  return out;
}

absl::StatusOr<Converted> ConvertProblem(const readers::PackingProblem& problem, OutputFormat to,
                                         const ReplaySettings& settings) {
  if (to == OutputFormat::kCsv) return Converted{readers::WriteMinimallocCsv(problem), {}};
  absl::StatusOr<Converted> out = ConvertRequests(RequestsOf(problem), to, settings);
  if (out.ok()) NoteLoss(problem.offsets.size(), "offsets of the packing", *out);
  return out;
}

}  // namespace

InputRule ConvertedInputs() {
  return {.problems = true,
          .names = "a recording, a PyTorch memory snapshot, a request trace or a packing problem (CSV)"};
}

absl::StatusOr<Converted> Convert(const Input& input, OutputFormat to, const ReplaySettings& settings) {
  if (input.requests() != nullptr) return ConvertRequests(*input.requests(), to, settings);
  if (input.problem() != nullptr) return ConvertProblem(*input.problem(), to, settings);
  if (input.snapshot() == nullptr) return absl::InvalidArgumentError("a message cannot be converted");
  absl::StatusOr<Converted> out = ConvertSnapshot(*input.snapshot(), to, settings);
  const std::vector<trace::Note>& notes = input.snapshot()->notes;
  if (out.ok()) out->notes.insert(out->notes.end(), notes.begin(), notes.end());
  return out;
}

}  // namespace ashlar::answers
