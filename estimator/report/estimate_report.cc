// The parts of a dry run over time: a line a phase.

#include "estimator/report/estimate_report.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/shared/layout.h"
#include "estimator/program.h"

namespace ashlar::estimate {
namespace {

using report::AppendSection;
using report::RowTexts;

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

struct PhaseColumn {
  const char* name;
  std::size_t forms;  // how many of the forms have it, the fullest first
  std::uint64_t (*bytes)(const PhaseParts& phase);
};

constexpr std::size_t kForms = 3;
constexpr PhaseColumn kColumns[] = {
    {"weights", 1, [](const PhaseParts& phase) { return phase.parts.weights; }},
    {"optimizer", 1, [](const PhaseParts& phase) { return phase.parts.optimizer; }},
    {"gradients", 1, [](const PhaseParts& phase) { return phase.parts.gradients; }},
    {"saved", 3, [](const PhaseParts& phase) { return phase.parts.saved_activations; }},
    {"temporary", 3, [](const PhaseParts& phase) { return phase.parts.temporaries; }},
    {"batch", 1, [](const PhaseParts& phase) { return phase.parts.batch + phase.parts.libraries; }},
    {"cache", 2, [](const PhaseParts& phase) { return phase.reserved_bytes - phase.parts.total(); }},
    {"reserved", 3, [](const PhaseParts& phase) { return phase.reserved_bytes; }},
};

// In each form.
RowTexts Row(const PhaseParts& phase, Unit unit) {
  RowTexts out(kForms, absl::StrFormat("%-15s", phase.phase));
  for (const PhaseColumn& column : kColumns) {
    const double share = static_cast<double>(column.bytes(phase)) / static_cast<double>(unit.bytes);
    for (std::size_t form = 0; form < column.forms; ++form) out[form] += absl::StrFormat(" %9.2f", share);
  }
  return out;
}

RowTexts PhaseHead() {
  RowTexts out(kForms, absl::StrFormat("  %-6s %-15s", "step", "phase"));
  for (const PhaseColumn& column : kColumns) {
    for (std::size_t form = 0; form < column.forms; ++form) out[form] += absl::StrFormat(" %9s", column.name);
  }
  return out;
}

// Steps next to each other whose rows are the same.
struct Group {
  std::int64_t first, last;
  std::vector<RowTexts> rows;
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
  std::vector<RowTexts> forms;
  for (const std::string& head : PhaseHead()) forms.push_back({head});
  std::int64_t shown = 0;
  for (const Group& group : Shown(groups, run.moment.step)) {
    shown += group.last - group.first + 1;
    std::string steps = absl::StrCat(group.first);
    if (group.last > group.first) absl::StrAppend(&steps, "-", group.last);
    for (const RowTexts& row : group.rows) {
      for (std::size_t form = 0; form < kForms; ++form) {
        forms[form].push_back(absl::StrFormat("  %-6s %s", steps, row[form]));
      }
      steps.clear();
    }
  }
  report::AppendRows(forms, out);
  const std::int64_t others = groups.back().last - groups.front().first + 1 - shown;
  if (others > 0) absl::StrAppend(&out, "  ", others, " steps more in --json\n");
}

namespace {

using report::AppendRows;
using report::AppendWrapped;
using report::MiddleCut;
using report::Printable;
using report::Shortened;

constexpr std::size_t kMostLayerLines = 14;
constexpr std::size_t kMostOutliers = 2;
constexpr std::size_t kNameWidth = 44;
constexpr std::size_t kShortNameWidth = 26;

std::string Count(std::int64_t count) { return FormatCount(static_cast<std::uint64_t>(count)); }

std::string Percent(std::int64_t part, std::int64_t whole) {
  return absl::StrFormat("%.1f %%",
                         100 * static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1)));
}

// "encoder.layer." of "encoder.layer.3"; empty where the name does not end in a number.
std::string Stem(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  return end == name.size() ? "" : name.substr(0, end);
}

// Layers next to each other that differ in their number alone, as one line.
struct LayerLine {
  const LayerSum* first;
  const LayerSum* last;
  std::int64_t layers = 1;
};

std::vector<LayerLine> LayerLines(const std::vector<LayerSum>& layers) {
  std::vector<LayerLine> out;
  for (const LayerSum& layer : layers) {
    const std::string stem = Stem(layer.name);
    if (!out.empty() && !stem.empty() && Stem(out.back().last->name) == stem &&
        out.back().first->parameters == layer.parameters) {
      out.back().last = &layer;
      ++out.back().layers;
    } else {
      out.push_back({&layer, &layer});
    }
  }
  return out;
}

std::string Asked(const Estimate& of) {
  std::string out = of.run.is_training ? "training" : "inference";
  if (of.run.is_training && IsTrainedByMean(of.model)) out += " by the mean of its output, having no loss";
  absl::StrAppend(&out, ", batch ", of.run.batch);
  if (of.lengths.has_value()) {
    absl::StrAppend(&out, ", lengths ", Printable(of.lengths->text), " in ", BatchingName(of.batching), " batches");
  } else {
    absl::StrAppend(&out, " x ", of.run.tokens, " tokens", of.run.is_padded ? ", padded" : "");
  }
  if (of.run.accumulation > 1) absl::StrAppend(&out, ", ", of.run.accumulation, " batches a step");
  absl::StrAppend(&out, ", ", PrecisionName(of.run.precision));
  if (of.run.attention.has_value()) absl::StrAppend(&out, ", ", AttentionName(*of.run.attention), " attention");
  if (of.run.is_training) absl::StrAppend(&out, ", ", of.run.optimizer);
  if (of.run.is_checkpointed) absl::StrAppend(&out, ", checkpointed");
  if (of.run.keeps_outputs) absl::StrAppend(&out, ", outputs kept");
  if (const std::string changes = SwitchesText(of.model.switches); !changes.empty()) {
    absl::StrAppend(&out, ", ", Shortened(Printable(changes), 60));
  }
  absl::StrAppend(&out, ", torch ", of.run.torch_version);
  if (of.capacity_bytes.has_value()) {
    absl::StrAppend(&out, ", on ", of.device.empty() ? "a device" : of.device, " of ", FormatBytes(*of.capacity_bytes));
  }
  return out;
}

void AppendParameters(const Estimate& of, std::string& out) {
  AppendSection("PARAMETERS", absl::StrCat(Count(of.model.count()), ", by layer"), out);
  const std::vector<LayerLine> lines = LayerLines(of.layers);
  const std::int64_t all = of.model.count();
  std::int64_t shown = 0;
  std::vector<RowTexts> forms(2);
  const auto add = [&](const std::string& name, const std::string& count, const std::string& share) {
    const std::string figures = absl::StrFormat(" %18s  %7s", count, share);
    forms[0].push_back(absl::StrFormat("  %-44s", Shortened(name, kNameWidth)) + figures);
    forms[1].push_back(absl::StrFormat("  %-26s", MiddleCut(name, kShortNameWidth)) + figures);
  };
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLayerLines); ++i) {
    const LayerLine& line = lines[i];
    std::string name = line.first->name;
    if (line.layers > 1) absl::StrAppend(&name, " .. ", line.last->name.substr(Stem(line.last->name).size()));
    std::string count = Count(line.first->parameters);
    if (line.layers > 1) count = absl::StrCat(line.layers, " x ", count);
    shown += line.first->parameters * line.layers;
    add(Printable(name), count, Percent(line.first->parameters * line.layers, all));
  }
  if (lines.size() > kMostLayerLines) {
    add(absl::StrCat(lines.size() - kMostLayerLines, " more"), Count(all - shown), Percent(all - shown, all));
  }
  AppendRows(forms, out);
  for (const TiedName& tied : of.model.tied) {
    out += absl::StrFormat("  %s is %s, counted once\n", Shortened(Printable(tied.name), 50),
                           Shortened(Printable(tied.of), 60));
  }
}

void AppendSetAside(const Estimate& of, std::string& out) {
  std::int64_t frozen = 0, on_host = 0;
  for (const ModelParameter& parameter : of.model.parameters) {
    if (parameter.is_frozen) frozen += parameter.count();
    if (parameter.is_on_host) on_host += parameter.count();
  }
  if (frozen > 0) absl::StrAppend(&out, "  ", Count(frozen), " frozen: no gradients, no optimizer states\n");
  if (on_host > 0) absl::StrAppend(&out, "  ", Count(on_host), " on the host, with their gradients and states\n");
}

void AppendOutliers(const Estimate& of, std::string& out) {
  const std::int64_t all = of.model.count();
  for (std::size_t i = 0; i < std::min(of.outliers.size(), kMostOutliers); ++i) {
    const Outlier& outlier = of.outliers[i];
    std::string text =
        absl::StrCat(Percent(outlier.parameters, all), " of all parameters are one ",
                     outlier.is_embedding ? absl::StrCat("embedding of ", Count(outlier.sizes[0]), " rows")
                                          : absl::StrCat("tensor of ", Count(outlier.parameters)),
                     ": ", outlier.name);
    if (outlier.parameters_of_its_rows > outlier.parameters) {
      absl::StrAppend(&text, "; ", Percent(outlier.parameters_of_its_rows, all), " grow with these rows");
    }
    if (outlier.column.has_value()) {
      absl::StrAppend(&text, "; ", Count(outlier.column->categories), " of the rows come from ", outlier.column->name,
                      ": without it the model has ", Count(outlier.parameters_without_column), " parameters");
    }
    out += "  ";
    AppendWrapped(text, 2, out);
  }
}

void AppendStates(const Estimate& of, std::string& out) {
  AppendSection("MODEL STATES", "weights, gradients, optimizer states: bytes a parameter, and in all", out);
  const auto parameters = static_cast<double>(of.model.count());
  std::vector<RowTexts> forms(2);
  for (const ModelStates& states : of.states) {
    const std::string name =
        absl::StrCat(states.optimizer.empty() ? "inference" : states.optimizer, ", ", PrecisionName(states.precision));
    const std::string sums = absl::StrFormat(
        "  %-20s %6.2f  %12s", name, static_cast<double>(states.total()) / parameters, FormatBytes(states.total()));
    std::string line = absl::StrCat(sums, "   weights ", FormatBytes(states.weights_bytes));
    if (!states.optimizer.empty()) {
      absl::StrAppend(&line, ", gradients ", FormatBytes(states.gradients_bytes), ", optimizer ",
                      FormatBytes(states.optimizer_bytes));
    }
    const char* const mark = &states == &of.states.front() ? "   <- asked for" : "";
    forms[0].push_back(line + mark);
    forms[1].push_back(sums + mark);
  }
  const std::string rule =
      absl::StrFormat("  %-20s %6s  %12s   ", "rule of thumb", "", FormatBytes(of.rule_of_thumb_bytes));
  forms[0].push_back(rule + "16 bytes a parameter + 4 bytes a token + 2 GiB, to compare with");
  forms[1].push_back(rule + "to compare with");
  AppendRows(forms, out);
}

std::string PlaceText(const DryRun& run) {
  const PeakMoment& moment = run.moment;
  std::string out = moment.step > 0 ? absl::StrCat("step ", moment.step, ", ") : "";
  absl::StrAppend(&out, moment.place.phase);
  const auto add = [&out](const std::string& what, const std::string& of) {
    if (!what.empty()) absl::StrAppend(&out, ", ", Printable(what));
    if (!of.empty()) absl::StrAppend(&out, what.empty() ? ", " : " of ", Printable(of));
  };
  add(moment.place.operation, moment.place.module);
  add(moment.place.tensor, moment.place.owner);
  return out;
}

void AppendLengths(const Estimate& of, std::string& out) {
  if (!of.lengths.has_value()) return;
  std::vector<std::uint64_t> tokens;
  for (const BatchShape& shape : of.run.batches) tokens.push_back(static_cast<std::uint64_t>(shape.tokens));
  const Quantiles spread = QuantilesOf(std::move(tokens));
  AppendSection("LENGTHS", of.lengths->text, out);
  std::string text =
      absl::StrCat(Count(static_cast<std::int64_t>(of.lengths->samples.size())), " samples, ",
                   Count(static_cast<std::int64_t>(of.run.batches.size())), " batches padded to ", spread.least, " to ",
                   spread.most, " tokens (median ", spread.median, "); the first ", of.run.steps, " of an epoch's ",
                   Count(of.epoch_steps), " steps are run, shuffled with seed ", of.seed);
  if (of.lengths->cut > 0) {
    absl::StrAppend(&text, "; ", FormatCount(of.lengths->cut), " samples were longer and are cut to ",
                    of.lengths->longest);
  }
  out += "  ";
  AppendWrapped(text, 2, out);
}

void AppendEstimatePart(const char* name, std::uint64_t bytes, const std::string& remark, std::string& out) {
  const std::string bare = absl::StrFormat("  %-22s %12s   ", name, FormatBytes(bytes));
  AppendRows({{bare + remark}, {bare + remark.substr(0, remark.find(','))}, {bare}}, out);
}

void AppendParts(const Estimate& of, const DryRun& run, std::string& out) {
  const MomentParts& parts = run.parts;
  AppendEstimatePart("weights", parts.weights, "", out);
  AppendEstimatePart("optimizer states", parts.optimizer, "", out);
  AppendEstimatePart("gradients", parts.gradients, "", out);
  AppendEstimatePart("saved activations", parts.saved_activations, "kept from forward for backward", out);
  AppendEstimatePart("temporaries", parts.temporaries, "gradients of activations, recomputed ones, scratch", out);
  AppendEstimatePart("batch, libraries", parts.batch + parts.libraries, "", out);
  AppendEstimatePart("rounding and cache", run.reserved_bytes - parts.total(), "of the allocator", out);
  if (of.driver_bytes > 0)
    AppendEstimatePart("from the driver", of.driver_bytes, "cuBLAS workspaces, before torch 2", out);
  AppendEstimatePart("CUDA context", of.context_bytes, of.context_source, out);
  AppendEstimatePart("= on the device", of.DeviceBytes(run), "", out);
  if (const std::optional<ByteInterval> interval = of.DeviceInterval(); interval.has_value()) {
    std::string text = FormatBytes(interval->least_bytes);
    if (interval->most_bytes != interval->least_bytes)
      absl::StrAppend(&text, " to ", FormatBytes(interval->most_bytes));
    out += "  interval: ";
    AppendWrapped(absl::StrCat(text, ", with ", interval->reason), 2, out);
  }
}

std::string FitText(const Estimate& of, const DryRun& run) {
  if (!run.fits) return absl::StrCat("   fails at ", FormatBytes(run.failed_bytes));
  if (!of.capacity_bytes.has_value()) return "";
  return absl::StrCat("   fits, ", FormatBytes(*of.capacity_bytes - of.DeviceBytes(run)), " to spare");
}

void AppendRuns(const Estimate& of, std::string& out) {
  const DryRun& run = *of.ascending;
  const std::string title = run.fits ? "PEAK" : "WHEN IT FAILS";
  AppendSection(title,
                absl::StrCat("dry run, ", of.run.steps, " steps, ", FormatCount(run.requests),
                             " requests: every tensor, no arithmetic"),
                out);
  AppendParts(of, run, out);
  out += "  ";
  AppendWrapped(run.fits ? absl::StrCat("reached in ", PlaceText(run), ", at a request of ",
                                        FormatBytes(run.moment.request_bytes))
                         : absl::StrCat("does not fit: ", FormatBytes(run.failed_bytes), " more in ", PlaceText(run)),
                2, out);
  AppendPhases(run, out);
  AppendSection("THE DRIVER'S ADDRESSES", "which segment a request splits depends on them: both orders", out);
  std::vector<RowTexts> forms(3);
  for (const auto& [name, order] : {std::pair("ascending", &of.ascending), std::pair("descending", &of.descending)}) {
    const DryRun& one = **order;
    const std::string device = absl::StrFormat("  %-11s on the device %12s", name, FormatBytes(of.DeviceBytes(one)));
    const std::string reserved = absl::StrFormat(", reserved %12s", FormatBytes(one.peak_reserved_bytes));
    const std::string allocated = absl::StrFormat(", allocated %12s", FormatBytes(one.peak_allocated_bytes));
    const std::string fit = FitText(of, one);
    forms[0].push_back(absl::StrCat(device, reserved, allocated, fit));
    forms[1].push_back(absl::StrCat(device, reserved, fit));
    forms[2].push_back(absl::StrCat(device, fit));
  }
  AppendRows(forms, out);
}

}  // namespace

std::string ToText(const EstimateReport& report) {
  const Estimate& of = report.estimate;
  std::string out =
      absl::StrCat("ESTIMATE  ", of.model.architecture.empty() ? of.model.family : Printable(of.model.architecture),
                   ", ", Count(of.model.count()), " parameters\n          ");
  AppendWrapped(Asked(of), 10, out);
  if (report.shuffles.has_value()) AppendShuffles(of, *report.shuffles, out);
  if (report.levers.has_value()) AppendLevers(of, *report.levers, out);
  if (report.fit.has_value()) AppendFit(*report.fit, out);
  if (report.shuffles.has_value() || report.levers.has_value() || report.fit.has_value()) return out;
  AppendParameters(of, out);
  AppendSetAside(of, out);
  AppendOutliers(of, out);
  AppendStates(of, out);
  AppendLengths(of, out);
  if (of.no_dry_run.empty()) {
    AppendRuns(of, out);
  } else {
    out += "\n";
    AppendWrapped(of.no_dry_run, 0, out);
    AppendEstimatePart("CUDA context", of.context_bytes, of.context_source, out);
    AppendEstimatePart("= at least", of.context_bytes + of.states.front().total(), "context and model states", out);
  }
  for (const trace::Note& note : of.model.notes) {
    out += "note: ";
    AppendWrapped(note.message, 6, out);
  }
  return out;
}

}  // namespace ashlar::estimate
