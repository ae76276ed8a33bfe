// What `ashlar replay` prints: the counts of one replay, as text or JSON. The JSON's keys are those of the golden
// files' index, so that the two can be compared key by key (docs/guide/replay.md).
#ifndef ASHLAR_ANALYZER_REPORT_REPLAY_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_REPLAY_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/core/stats.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/fidelity.h"

namespace ashlar::report {

struct ReplayReport {
  std::string source;
  std::string compat;
  std::string free_order;
  std::string conf;
  std::optional<std::uint64_t> capacity_bytes;  // nullopt: not limited
  std::uint64_t requests = 0;
  core::Stats stats;
  device::DeviceCalls calls;
  std::optional<std::uint64_t> cost_ns;                       // nullopt: not modelled (addresses were recorded)
  std::optional<replay::Fidelity> fidelity;                   // snapshots only
  std::optional<std::uint64_t> recorded_peak_reserved_bytes;  // snapshots only
  std::vector<trace::Note> notes;
};

std::string ToText(const ReplayReport& report);
std::string ToJson(const ReplayReport& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_REPLAY_REPORT_H_
