#include "commands/documents/schemas.h"

#include <algorithm>
#include <functional>
#include <map>

#include "commands/bound/bound.h"
#include "commands/check/check.h"
#include "commands/commands.h"
#include "commands/documents/documents.h"
#include "commands/diff/diff.h"
#include "commands/explain/explain_report.h"
#include "commands/fit/fit.h"
#include "commands/fleet/fleet.h"
#include "commands/plan/plan.h"
#include "commands/sweep/sweep.h"
#include "commands/watch/watch.h"
#include "estimator/report/estimate_report.h"
#include "launcher/dry_run_report.h"

namespace ashlar::cli {
namespace {

using SchemaMaker = std::function<std::string()>;

const std::map<std::string, SchemaMaker, std::less<>>& AllSchemas() {
  static const auto* all = [] {
    auto* out = new std::map<std::string, SchemaMaker, std::less<>>{{"bound", &report::BoundSchema},
                                                                    {"check", &report::CheckSchema},
                                                                    {"diff", &report::DiffSchema},
                                                                    {"dry-run", &DryRunSchema},
                                                                    {"estimate", &estimate::EstimateSchema},
                                                                    {"explain", &report::ExplainSchema},
                                                                    {"fit", &report::FitSchema},
                                                                    {"fleet", &report::FleetSchema},
                                                                    {"plan", &report::PlanSchema},
                                                                    {"run", &RunSchema},
                                                                    {"sweep", &report::SweepSchema},
                                                                    {"tune", &TuneSchema},
                                                                    {"watch", &report::WatchSchema}};
    for (const KeptDocument& kept : KeptSchemas())
      out->try_emplace(std::string(kept.name), [kept] { return std::string(kept.text); });
    return out;
  }();
  return *all;
}

}  // namespace

std::vector<std::string> SchemaNames() {
  std::vector<std::string> out;
  for (const auto& [name, make] : AllSchemas()) out.push_back(name);
  return out;
}

std::optional<std::string> SchemaNamed(absl::string_view name) {
  const auto found = AllSchemas().find(name);
  return found == AllSchemas().end() ? std::nullopt : std::optional(found->second());
}

}  // namespace ashlar::cli
