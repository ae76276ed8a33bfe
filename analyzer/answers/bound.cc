#include "analyzer/answers/bound.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/lifetimes.h"

namespace ashlar::answers {
namespace {

// Packs and has the offsets checked.
absl::Status PackProblem(std::uint64_t max_steps, const remedies::Progress& progress, BoundAnswer& out) {
  if (progress) progress(absl::StrCat("packing ", FormatCount(out.problem.buffers.size()), " lifetimes"));
  const analyses::Packing packing = analyses::Pack(out.problem.buffers, {.max_steps = max_steps});
  const absl::Status check = analyses::CheckPacking(out.problem.buffers, packing.offsets, packing.height);
  if (!check.ok()) return absl::InternalError(absl::StrCat("the packing does not hold: ", check.message()));
  out.buffers = out.problem.buffers.size();
  out.lower_bound = packing.lower_bound;
  out.packing_height = packing.height;
  out.search_steps = packing.steps;
  out.problem.offsets = packing.offsets;
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> CheckGiven(const readers::PackingProblem& problem) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < problem.offsets.size(); ++i) {
    if (problem.offsets[i] > UINT64_MAX - problem.buffers[i].size) {
      return absl::InvalidArgumentError(absl::StrCat("the offset of id ", problem.ids[i], " is above 2^64 - size"));
    }
    height = std::max(height, problem.offsets[i] + problem.buffers[i].size);
  }
  const absl::Status check = analyses::CheckPacking(problem.buffers, problem.offsets, height);
  if (check.ok()) return height;
  return absl::InvalidArgumentError(absl::StrCat("the column offset is no packing: ", check.message(),
                                                 " (counted from 0); mend it or take the column out"));
}

void NoteTrace(const TracedRun& run, const analyses::BlockLifetimes& lifetimes, BoundAnswer& out) {
  if (lifetimes.unknown_requests > 0) {
    out.notes.push_back({"requests_unknown", "blocks whose request is not in this trace count with their block size",
                         lifetimes.unknown_requests});
  }
  if (!run.has_events) {
    out.notes.push_back({"no_events", "the file has one state, not how it came about: the bound is for that state", 1});
  }
}

}  // namespace

absl::StatusOr<BoundAnswer> BoundOfTrace(std::string input, const TracedRun& run, std::uint64_t max_steps,
                                         const remedies::Progress& progress) {
  BoundAnswer out{std::move(input), run.source};
  analyses::BlockLifetimes lifetimes = analyses::LifetimesOf(run.timeline);
  for (std::size_t i = 0; i < lifetimes.in_use.size(); ++i) out.problem.ids.push_back(absl::StrCat(i));
  out.notes = NotesOfSettings(run.options);
  NoteTrace(run, lifetimes, out);
  out.problem.buffers = std::move(lifetimes.in_use);
  if (absl::Status status = PackProblem(max_steps, progress, out); !status.ok()) return status;
  out.lower_bound = lifetimes.live_bytes_peak;
  out.reserved_bytes = run.timeline.reserved_peak().bytes;
  if (!run.has_events || !run.has_allocator) return out;
  remedies::WhatIfSettings settings;
  settings.baseline = run.options;
  absl::StatusOr<std::vector<remedies::WhatIfRow>> rows = remedies::RunWhatIfs(run.requests, settings, progress);
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  const std::uint64_t cold = out.what_if.front().peak_reserved_bytes;
  if (cold != *out.reserved_bytes) {
    out.notes.push_back({"cold_replay_differs",
                         absl::StrCat("replayed from an empty allocator, in memory that does not run out, the recorded "
                                      "settings reserve ",
                                      FormatBytes(cold)),
                         1});
  }
  return out;
}

absl::StatusOr<BoundAnswer> BoundOfProblem(std::string input, readers::PackingProblem problem, std::uint64_t max_steps,
                                           const remedies::Progress& progress) {
  BoundAnswer out{std::move(input), absl::StrCat("packing problem, ", FormatCount(problem.buffers.size()), " buffers")};
  out.is_bytes = false;
  if (!problem.offsets.empty()) {
    const absl::StatusOr<std::uint64_t> given = CheckGiven(problem);
    if (!given.ok()) return given.status();
    out.given_height = *given;
  }
  out.problem = std::move(problem);
  if (absl::Status status = PackProblem(max_steps, progress, out); !status.ok()) return status;
  return out;
}

std::optional<double> GapClosed(const BoundAnswer& answer, const remedies::WhatIfRow& row) {
  if (answer.what_if.empty()) return std::nullopt;
  const std::uint64_t baseline = answer.what_if.front().peak_reserved_bytes;
  if (baseline <= answer.lower_bound) return std::nullopt;
  return (static_cast<double>(baseline) - static_cast<double>(row.peak_reserved_bytes)) /
         static_cast<double>(baseline - answer.lower_bound);
}

}  // namespace ashlar::answers
