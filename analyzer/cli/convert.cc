#include "analyzer/cli/convert.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/trace/codec.h"
#include "analyzer/analyses/state/lifetimes.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/readers/plain/minimalloc_csv.h"
#include "analyzer/readers/plain/plain_trace.h"
#include "analyzer/readers/plain/plain_trace_writer.h"
#include "analyzer/readers/snapshot.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/readers/torch/torch_snapshot_writer.h"
#include "analyzer/replay/recorded_snapshot.h"
#include "analyzer/report/printable.h"
#include "analyzer/report/traced_run.h"

namespace ashlar::cli {
namespace {

enum class Format { kRecording, kPickle, kTrace, kCsv };

struct FormatName {
  Format format;
  const char* name;        // of --to
  const char* endings[2];  // of files
};
constexpr FormatName kFormats[] = {{Format::kRecording, "ashlar", {".ashlar", ".ashlar"}},
                                   {Format::kPickle, "pickle", {".pickle", ".pkl"}},
                                   {Format::kTrace, "trace", {".trace", ".txt"}},
                                   {Format::kCsv, "csv", {".csv", ".csv"}}};

struct ConvertFlags {
  std::string input;
  std::string output;
  std::string to;
  ReplayFlags replay;
};

// What was read, in the one form that it has.
struct Source {
  std::optional<trace::Snapshot> snapshot;
  std::optional<trace::RequestTrace> requests;
  std::optional<readers::PackingProblem> problem;
};

struct Converted {
  std::string bytes;
  std::vector<trace::Note> notes;  // what the format does not carry, what was guessed

  void Note(std::uint64_t count, absl::string_view message) {
    if (count > 0) notes.push_back({"", std::string(message), count});
  }
};

absl::StatusOr<Format> FormatOf(const ConvertFlags& flags) {
  for (const FormatName& format : kFormats) {
    if (flags.to == format.name) return format.format;
    if (!flags.to.empty()) continue;
    for (const char* ending : format.endings) {
      if (absl::EndsWith(flags.output, ending)) return format.format;
    }
  }
  return absl::InvalidArgumentError(
      flags.to.empty() ? absl::StrCat("the name ", flags.output,
                                      " does not tell the format: end it in .ashlar, .pickle, .trace or "
                                      ".csv, or give --to ashlar, pickle, trace or csv")
                       : absl::StrCat("--to: '", flags.to, "' is none of ashlar, pickle, trace and csv"));
}

absl::StatusOr<Source> Read(const std::string& bytes) {
  const readers::InputKind kind = readers::Sniff(bytes);
  Source out;
  if (readers::IsSnapshot(kind)) {
    absl::StatusOr<trace::Snapshot> snapshot = readers::ReadSnapshot(bytes);
    if (!snapshot.ok()) return snapshot.status();
    out.snapshot = *std::move(snapshot);
  } else if (kind == readers::InputKind::kPlainTrace) {
    absl::StatusOr<trace::RequestTrace> requests = readers::ParsePlainTrace(bytes);
    if (!requests.ok()) return requests.status();
    out.requests = *std::move(requests);
  } else if (kind == readers::InputKind::kPackingCsv) {
    absl::StatusOr<readers::PackingProblem> problem = readers::ParseMinimallocCsv(bytes);
    if (!problem.ok()) return problem.status();
    out.problem = *std::move(problem);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("this is ", readers::InputKindName(kind),
                     ", not a recording, a PyTorch memory snapshot, a request trace or a packing problem (CSV)"));
  }
  return out;
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
                            .kind = edge.is_begin ? trace::RequestKind::kAlloc : trace::RequestKind::kFree});
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
  out.Note(EventsOfOthers(snapshot, device), "events of other devices: choose one with --device");
  out.Note(snapshot.stacks.stack_count(), "call stacks");
  out.Note(snapshot.annotations.size(), "marks of the program");
}

absl::StatusOr<Converted> SnapshotToTrace(const trace::Snapshot& snapshot, const report::ExplainOptions& options) {
  const absl::StatusOr<report::ObservedRun> run = report::ObserveSnapshot(snapshot, options);
  if (!run.ok()) return run.status();
  const readers::PlainTrace trace = readers::WritePlainTrace(run->recorded.program.requests);
  Converted out{trace.text, {}};
  NoteOneDevice(snapshot, run->device, out);
  out.Note(trace.pool_requests,
           "requests in private pools, written as if in the default pool; what emptied one is left out");
  out.Note(trace.stream_syncs, "frees that waited for one stream, written as done when the whole device is (y)");
  out.Note(run->recorded.program.start_count, "requests for blocks older than the trace, written first");
  return out;
}

absl::StatusOr<Converted> SnapshotToCsv(const trace::Snapshot& snapshot, const report::ExplainOptions& options) {
  const absl::StatusOr<report::ObservedRun> run = report::ObserveSnapshot(snapshot, options);
  if (!run.ok()) return run.status();
  const analyses::BlockLifetimes lifetimes = analyses::LifetimesOf(run->timeline);
  readers::PackingProblem problem;
  for (const trace::Lifetime& lifetime : lifetimes.in_use) {
    problem.ids.push_back(absl::StrCat("b", problem.ids.size()));
    problem.buffers.push_back(lifetime);
  }
  Converted out{readers::WriteMinimallocCsv(problem), {}};
  NoteOneDevice(snapshot, run->device, out);
  out.Note(lifetimes.unknown_requests, "blocks whose request is not known, written with the block's size");
  out.Note(problem.buffers.size(), "lifetimes are all that is written: no streams, segments, addresses and times");
  return out;
}

Converted SnapshotToPickle(const trace::Snapshot& snapshot) {
  Converted out{readers::WriteTorchSnapshot(snapshot), {}};
  if (!snapshot.recording.has_value()) return out;
  std::uint64_t block_sizes = 0;
  for (const std::vector<trace::Event>& events : snapshot.device_traces) {
    for (const trace::Event& event : events) block_sizes += event.block_size_bytes > 0 ? 1 : 0;
  }
  out.Note(block_sizes, "events whose block size the format does not carry");
  out.Note(snapshot.recording->facts.size(), "answers and calls between events (refused growth, empty_cache, limits)");
  out.Note(1, "the version of the rules and the device's memory");
  return out;
}

absl::StatusOr<Converted> FromSnapshot(const trace::Snapshot& snapshot, Format to,
                                       const report::ExplainOptions& options) {
  switch (to) {
    case Format::kRecording:
      return Converted{trace::Encode(snapshot), {}};
    case Format::kPickle:
      return SnapshotToPickle(snapshot);
    case Format::kTrace:
      return SnapshotToTrace(snapshot, options);
    case Format::kCsv:
      return SnapshotToCsv(snapshot, options);
  }
  return absl::InternalError("no such format");
}

// A program has no events until an allocator has run it.
absl::StatusOr<Converted> FromRequests(const trace::RequestTrace& requests, Format to,
                                       const report::ExplainOptions& options) {
  if (to == Format::kTrace) return Converted{readers::WritePlainTrace(requests).text, {}};
  const absl::StatusOr<policy::Options> policy_options = remedies::WishedOptions(options.wishes);
  if (!policy_options.ok()) return policy_options.status();
  replay::RequestReplayOptions replay_options{*policy_options, {}, options.memory_fraction};
  replay_options.device.address_order = options.segment_addresses;
  replay_options.device.capacity_bytes = options.capacity_bytes.value_or(remedies::kAmpleCapacityBytes);
  const absl::StatusOr<trace::Snapshot> snapshot = replay::RecordRequests(requests, std::move(replay_options));
  if (!snapshot.ok()) return snapshot.status();
  absl::StatusOr<Converted> out = FromSnapshot(*snapshot, to, options);
  if (out.ok() && to != Format::kCsv) {
    out->Note(1, absl::StrCat("the events are those of a replay as ", policy::CompatName(policy_options->compat)));
  }
  return out;
}

absl::StatusOr<Converted> Convert(const Source& source, Format to, const ConvertFlags& flags,
                                  const report::ExplainOptions& options) {
  if (source.snapshot.has_value()) {
    absl::StatusOr<Converted> out = FromSnapshot(*source.snapshot, to, options);
    const std::vector<trace::Note>& notes = source.snapshot->notes;
    if (out.ok()) out->notes.insert(out->notes.end(), notes.begin(), notes.end());
    return out;
  }
  if (absl::Status status = NoSnapshotFlags(flags.replay); !status.ok()) return status;
  if (source.requests.has_value()) return FromRequests(*source.requests, to, options);
  if (to == Format::kCsv) return Converted{readers::WriteMinimallocCsv(*source.problem), {}};
  absl::StatusOr<Converted> out = FromRequests(RequestsOf(*source.problem), to, options);
  if (out.ok()) out->Note(source.problem->offsets.size(), "offsets of the packing");
  return out;
}

int RunConvert(const ConvertFlags& flags) {
  const absl::StatusOr<Format> to = FormatOf(flags);
  if (!to.ok()) return Fail(kUsage, to.status());
  absl::StatusOr<report::ExplainOptions> options = ReadReplayFlags(flags.replay);
  if (!options.ok()) return Fail(kUsage, options.status());
  ProgressLine line;
  options->progress = line.Shower();
  const absl::StatusOr<std::string> bytes = LoadBytes(flags.input, *options);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  const absl::StatusOr<Source> source = Read(*bytes);
  if (!source.ok()) return FailInput(flags.input, source.status());
  line.Show(absl::StrCat("converting ", flags.input));
  const absl::StatusOr<Converted> converted = Convert(*source, *to, flags, NamingProgress(flags.input, *options));
  if (!converted.ok()) return FailInput(flags.input, converted.status());
  line.Show(absl::StrCat("writing ", flags.output));
  if (flags.output == "-") {
    if (!Print(converted->bytes)) return kUnreadable;
  } else if (absl::Status status = WriteFile(flags.output, converted->bytes); !status.ok()) {
    return Fail(kUnreadable, status);
  }
  ProgressLine::End();
  for (const trace::Note& note : converted->notes) {
    std::fprintf(stderr, "%s: %s (%s)\n", flags.output.c_str(), report::Printable(note.message).c_str(),
                 FormatCount(note.count).c_str());
  }
  return kOk;
}

}  // namespace

void AddConvert(CommandLine& line) {
  Command app = line.AddCommand("convert", "write a recording, snapshot, trace or packing problem in another format");
  auto flags = std::make_shared<ConvertFlags>();
  app.Add("input", flags->input, "a file, or - for standard input").Required();
  app.Add("output", flags->output, "a file that ends in .ashlar, .pickle, .trace or .csv; or - with --to").Required();
  app.Add("--to", flags->to, "ashlar, pickle, trace or csv, whatever the output is called");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunConvert(*flags); });
}

}  // namespace ashlar::cli
