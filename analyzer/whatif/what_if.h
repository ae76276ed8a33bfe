// Replays the same requests from an empty allocator under each of several settings.
//
//   std::vector<WhatIfRow> rows = *RunWhatIfs(requests, {.baseline = options, .capacity_bytes = 16 * kGiB});
//   Advice advice = Advise(rows);  // advice.h
//
// Every row, the baseline's too, starts empty and gets segment addresses by the simulated device's rule, so that rows
// can be compared with each other.
#ifndef ASHLAR_ANALYZER_WHATIF_WHAT_IF_H_
#define ASHLAR_ANALYZER_WHATIF_WHAT_IF_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/steps/continuation.h"
#include "analyzer/replay/op_sink.h"
#include "analyzer/whatif/risk.h"

namespace ashlar::whatif {

struct WhatIfSettings {
  policy::Options baseline;                     // what was recorded; its conf names the row
  std::optional<std::uint64_t> capacity_bytes;  // what the allocator can have; nullopt = not known
  std::optional<double> memory_fraction;
  device::SimDeviceOptions device;  // capacity is overwritten
  std::vector<std::string> confs;   // empty = StandardConfs()
  bool is_cut_off = false;          // the recorded run ended in a failure
  std::size_t threads = 0;          // of RunWhatIfs, 0 = one a core: the rows do not depend on it
};

// Told what is being done as it begins, in words for people: "what-ifs 3 of 8". Empty: nobody asks. Called by any
// thread, not by two at once.
using Progress = std::function<void(const std::string& stage)>;

// The default, expandable segments, split limits of 64 to 512 MiB, rounding to quarters between powers of two.
std::vector<std::string> StandardConfs();

// What the program would have asked next, replayed after what was recorded: the rest of a step that a failure cut off,
// and whole ones after it (analyses/steps/continuation.h). The replay ends at the first request that fails. Where none
// does and each step leaves more behind, the failure is told from that growth: `failed_after` and what follows it are
// then estimates.
struct ProjectedPart {
  std::uint64_t requests = 0;               // allocations after the one that failed, as far as was replayed
  std::uint64_t steps = 0;                  // that they span, the cut-off one among them
  std::uint64_t peak_reserved_bytes = 0;    // of recorded and projected part together
  std::uint64_t retries = 0;                // of the projected part
  std::uint64_t ooms = 0;                   // of the projected part: 0 or 1
  std::uint64_t failed_after = 0;           // how many requests later: 1 = the next
  std::uint64_t failed_steps_later = 0;     // whole steps after the cut-off one: 0 = in that one
  std::uint64_t needed_bytes = 0;           // there: allocated, and the request
  std::uint64_t available_bytes = 0;        // there: what the allocator could hold
  std::uint64_t growth_bytes_per_step = 0;  // that stay behind each step
  bool is_extrapolated = false;             // the failure is told by that growth, and lies beyond what was replayed

  bool is_rising = false;  // each step asks for more than the one before: a later one may fail

  // No request fails, and 1 % of the memory is left: sizes of a step to come are a little different in the real run.
  bool IsSafe() const {
    return ooms == 0 && !is_rising && peak_reserved_bytes <= available_bytes - available_bytes / 100;
  }
};

struct WhatIfRow {
  std::string conf;  // as for PYTORCH_CUDA_ALLOC_CONF; empty = the default settings
  bool is_baseline = false;
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t ooms = 0;          // rejections by throw_on_cudamalloc_oom among them
  std::uint64_t driver_calls = 0;  // calls that obtain or return memory
  std::uint64_t cost_ns = 0;       // of the device's calls, by the simulated device's cost model
  std::uint64_t retries = 0;       // allocations that had the whole cache returned before they tried again
  std::optional<bool> feasible;    // no request failed; nullopt where the capacity is not known
  std::vector<Risk> risks;         // what speaks against the setting
  std::optional<bool> gets_past;   // the request that ended the recorded run is served; nullopt where none did
  bool is_cut_off = false;         // the recorded run ended in a failure: `ooms` says nothing of what comes after it
  std::optional<ProjectedPart> projected;  // nullopt: nothing to project, or nothing is known to do it by

  // `gets_past` is of the last failure alone; this is of earlier ones as well.
  bool ServesAllRecorded() const { return ooms == 0; }
  // No request fails, as far as the step goes.
  bool CarriesThrough() const { return ooms == 0 && (!is_cut_off || (projected.has_value() && projected->IsSafe())); }
};

// Sees the decisions of the replays of RunWhatIfs, a sink a row. Called in the order of the rows for one row after the
// other, or for several rows at once from several threads.
class WhatIfWatch {
 public:
  virtual ~WhatIfWatch() = default;
  // Rows that it may watch at once.
  virtual std::size_t MostAtOnce() const { return std::numeric_limits<std::size_t>::max(); }
  // The sink of a row's replay; it must live until End. Begin and End of a row are called on one thread.
  virtual replay::OpSink* Begin(std::size_t row) = 0;
  // `row` is complete but for its risks. An error ends RunWhatIfs.
  virtual absl::Status End(std::size_t index, const WhatIfRow& row) = 0;
};

// One replay under `options`, with the capacity, the limit and the device of `settings`; its risks are left empty. Safe
// from several threads at once. `next`, where given, is how the same requests end and go on. `sink` may be nullptr.
absl::StatusOr<WhatIfRow> RunWhatIf(const trace::RequestTrace& requests, const WhatIfSettings& settings,
                                    const policy::Options& options, const analyses::Continuation* next = nullptr,
                                    replay::OpSink* sink = nullptr);

// The same with its risks, for requests of these `sizes`. Safe from several threads at once.
absl::StatusOr<WhatIfRow> ReplayUnder(const trace::RequestTrace& requests, const std::vector<RequestSize>& sizes,
                                      const WhatIfSettings& settings, const policy::Options& options,
                                      const analyses::Continuation* next = nullptr, replay::OpSink* sink = nullptr);

// The name of a baseline: its conf where that says what is replayed, else the settings as a conf of their own (a
// program can change them after start).
std::string BaselineConf(const policy::Options& baseline);

// The baseline's row first, then one a conf that decides otherwise. Standard confs keep what a recorded conf says
// besides. Fails when a conf cannot be parsed.
absl::StatusOr<std::vector<WhatIfRow>> RunWhatIfs(const trace::RequestTrace& requests, const WhatIfSettings& settings,
                                                  const Progress& progress = {},
                                                  const analyses::Continuation* next = nullptr,
                                                  WhatIfWatch* watch = nullptr);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_WHAT_IF_H_
