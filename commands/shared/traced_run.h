// A trace as every command takes it: the timeline it gives, and what stands beside it. A snapshot gives the timeline
// that was recorded, a request trace the one of its replay.
//
//   absl::StatusOr<TracedRun> run = TraceInput(*LoadInput(bytes), settings);
//   run->timeline.reserved_peak();
#ifndef ASHLAR_COMMANDS_SHARED_TRACED_RUN_H_
#define ASHLAR_COMMANDS_SHARED_TRACED_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/holders/held_by_name.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/timeline.h"
#include "analyzer/whatif/what_if.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::answers {

// A device of a snapshot: its timeline as observed, and its replay.
struct ObservedRun {
  int device = 0;
  std::string source;  // "PyTorch snapshot, annotations (2.5 on), device 0, 1,000 events, the last of 9,670"
  replay::RecordedReplay recorded;
  timeline::Timeline timeline;
  std::vector<std::string> missing = {};  // kinds of events that the history lacks: the state alone was taken
};

// The device asked for, else the one that holds most. OutOfRange where the snapshot has no such device. The snapshot
// must outlive it.
absl::StatusOr<timeline::DeviceTrace> ChooseDevice(const trace::Snapshot& snapshot, std::optional<int> asked);

// FailedPrecondition where the trace and the segments contradict each other.
absl::StatusOr<ObservedRun> ObserveDevice(const timeline::DeviceTrace& trace, const ReplaySettings& settings);
// The same of the device that the settings ask for.
absl::StatusOr<ObservedRun> ObserveSnapshot(const trace::Snapshot& snapshot, const ReplaySettings& settings);

// A request trace, replayed.
struct ReplayedRun {
  policy::Options options;
  timeline::Timeline timeline;
  std::uint64_t retries = 0;
};

// Under the settings asked for; default: torch-2.10, no conf, memory that no trace fills.
// `ops`, where given, gets the request that each event answers, as a position in the trace.
absl::StatusOr<ReplayedRun> ReplayRequests(const trace::RequestTrace& requests, const ReplaySettings& settings,
                                           std::vector<std::uint32_t>* ops = nullptr);

// "PyTorch snapshot, annotations (2.5 on), device 0"; "recording, device 0".
std::string DescribeSource(const timeline::DeviceTrace& trace);
// "request trace, 812 requests, replayed".
std::string DescribeRequests(const trace::RequestTrace& requests);

// Of the settings that were replayed: keys that change no decision, numbers read in PyTorch's way, and what of a record
// was left out.
std::vector<trace::Note> NotesOfSettings(const policy::Options& options);

using whatif::WhatIfRequests;

// What is said of a file without events: a note, and the moment that its figures are of.
inline constexpr char kOneState[] = "the file has what was held at one moment, not the requests that led there";
inline constexpr char kMomentOfState[] = "the moment of the snapshot, without a history";

// Inclusive; equal where the trace tells the number.
struct CountSpan {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

struct TracedRun {
  std::string source;
  std::optional<int> device;  // nullopt: the trace does not name it
  timeline::Timeline timeline;
  policy::Options options;                        // what the allocator ran under
  trace::StackTable stacks;                       // empty: the trace has none
  std::vector<trace::Annotation> annotations;     // empty: none
  trace::RequestTrace requests;                   // what the program asked for, requests that failed left out
  std::optional<CountSpan> retries;               // nullopt: not in this trace
  bool can_fail = true;                           // false: replayed in memory that no trace fills
  bool has_allocator = true;                      // false: the program called the device itself
  bool has_events = true;                         // false: one state (kOneState)
  std::optional<analyses::HeldByName> held = {};  // who held what was live, without growth; nullopt: no names
};

// InvalidArgument for an input that holds no trace.
absl::StatusOr<TracedRun> TraceInput(const Input& input, const ReplaySettings& settings);
// Each device that the trace used; the one that the settings name, where they do.
absl::StatusOr<std::vector<TracedRun>> TraceDevices(const Input& input, const ReplaySettings& settings);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_TRACED_RUN_H_
