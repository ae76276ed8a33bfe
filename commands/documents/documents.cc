#include "commands/documents/documents.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>

#include "commands/bound/bound.h"
#include "commands/check/check.h"
#include "commands/commands.h"
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

const KeptDocument* FindDocument(absl::Span<const KeptDocument> documents, absl::string_view name) {
  const auto* const found =
      std::find_if(documents.begin(), documents.end(), [&](const KeptDocument& one) { return one.name == name; });
  return found == documents.end() ? nullptr : found;
}

std::string FirstSentence(const KeptDocument& page) {
  const std::size_t heading = page.text.find("\n\n");
  absl::string_view text = heading == absl::string_view::npos ? page.text : page.text.substr(heading + 2);
  text = text.substr(0, text.find("\n\n"));
  const std::size_t end = std::min(text.find(". "), text.find(".\n"));
  std::string out;
  for (std::size_t i = 0; i < std::min(end, text.size()); ++i) {
    if (text[i] == ']' && text.substr(i + 1, 1) == "(") {
      i = std::min(text.find(')', i), text.size());
    } else if (text[i] != '[') {
      out.push_back(text[i] == '\n' ? ' ' : text[i]);
    }
  }
  return out;
}

std::vector<std::string> NamesOf(absl::Span<const KeptDocument> documents) {
  std::vector<std::string> out;
  for (const KeptDocument& one : documents) out.emplace_back(one.name);
  return out;
}

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
