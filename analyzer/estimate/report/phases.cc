// The parts of a dry run over time: a line a phase.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/estimate/report/estimate_report.h"
#include "analyzer/report/json_values.h"
#include "analyzer/report/layout.h"

namespace ashlar::estimate {
namespace {

using report::AppendSection;

constexpr std::size_t kMostGroups = 3;

struct Unit {
  const char* name;
  std::uint64_t bytes;
};

// One for the whole table: the largest in which its largest number is not below 1.
Unit UnitOf(const std::vector<PhaseParts>& phases) {
  std::uint64_t most = 0;
  for (const PhaseParts& phase : phases) most = std::max(most, phase.reserved_bytes);
  if (most >= kGiB) return {"GiB", kGiB};
  return most >= kMiB ? Unit{"MiB", kMiB} : Unit{"KiB", kKiB};
}

std::string Row(const PhaseParts& phase, Unit unit) {
  std::string out = absl::StrFormat("%-15s", phase.phase);
  const MomentParts& parts = phase.parts;
  for (const std::uint64_t bytes :
       {parts.weights, parts.optimizer, parts.gradients, parts.saved_activations, parts.temporaries,
        parts.batch + parts.libraries, phase.reserved_bytes - parts.total(), phase.reserved_bytes}) {
    out += absl::StrFormat(" %9.2f", static_cast<double>(bytes) / static_cast<double>(unit.bytes));
  }
  return out;
}

// Steps next to each other whose rows are the same.
struct Group {
  std::int64_t first, last;
  std::vector<std::string> rows;
};

std::vector<Group> GroupsOf(const DryRun& run, Unit unit) {
  std::vector<Group> out;
  for (std::size_t i = 0; i < run.phases.size();) {
    Group next{run.phases[i].step, run.phases[i].step, {}};
    for (; i < run.phases.size() && run.phases[i].step == next.first; ++i) {
      next.rows.push_back(Row(run.phases[i], unit));
    }
    if (next.first == 0) continue;  // before the first step: weights
    if (!out.empty() && out.back().rows == next.rows) {
      out.back().last = next.last;
    } else {
      out.push_back(std::move(next));
    }
  }
  return out;
}

// The first, the last and the peak's where there are more.
std::vector<Group> Shown(std::vector<Group> groups, std::int64_t peak_step) {
  if (groups.size() <= kMostGroups) return groups;
  std::vector<Group> out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool has_peak = groups[i].first <= peak_step && peak_step <= groups[i].last;
    if (i == 0 || i + 1 == groups.size() || has_peak) out.push_back(std::move(groups[i]));
  }
  return out;
}

}  // namespace

void AppendPhases(const DryRun& run, std::string& out) {
  const Unit unit = UnitOf(run.phases);
  const std::vector<Group> groups = GroupsOf(run, unit);
  if (groups.empty()) return;
  AppendSection("OVER TIME",
                absl::StrCat(unit.name, "; each phase at its greatest need, between steps what a step leaves"), out);
  absl::StrAppend(
      &out,
      "  step   phase             weights optimizer gradients     saved temporary     batch     cache  reserved\n");
  std::int64_t shown = 0;
  for (const Group& group : Shown(groups, run.moment.step)) {
    shown += group.last - group.first + 1;
    std::string steps = absl::StrCat(group.first);
    if (group.last > group.first) absl::StrAppend(&steps, "-", group.last);
    for (const std::string& row : group.rows) {
      out += absl::StrFormat("  %-6s %s\n", steps, row);
      steps.clear();
    }
  }
  const std::int64_t others = groups.back().last - groups.front().first + 1 - shown;
  if (others > 0) absl::StrAppend(&out, "  ", others, " steps more in --json\n");
}

report::Json PartsJson(const MomentParts& parts, std::uint64_t reserved_bytes) {
  return {{"weights_bytes", parts.weights},         {"optimizer_bytes", parts.optimizer},
          {"gradients_bytes", parts.gradients},     {"saved_activations_bytes", parts.saved_activations},
          {"temporaries_bytes", parts.temporaries}, {"batch_bytes", parts.batch},
          {"libraries_bytes", parts.libraries},     {"rounding_and_cache_bytes", reserved_bytes - parts.total()}};
}

report::Json PhasesJson(const DryRun& run) {
  report::Json out = report::Json::Array();
  for (const PhaseParts& phase : run.phases) {
    report::Json row = {{"step", phase.step}, {"phase", phase.phase}};
    row.Update(PartsJson(phase.parts, phase.reserved_bytes));
    row["reserved_bytes"] = phase.reserved_bytes;
    out.Append(std::move(row));
  }
  return out;
}

}  // namespace ashlar::estimate
