#include "launcher/fit_runs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "console/command.h"
#include "launcher/json_fields.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

using answers::FitChange;
using answers::FitRow;
using answers::FitVerdict;
using answers::FitWork;
using nlohmann::json;

constexpr std::uint64_t kStepsBehind = 2;

FitChange FitChangeOf(const json& change) {
  FitChange out;
  out.name = Get<std::string>(change, "name");
  out.title = Get<std::string>(change, "title");
  out.group = Get<std::string>(change, "group");
  out.price = Get<int>(change, "price");
  out.costs = Get<std::string>(change, "costs");
  out.alters = Get<std::string>(change, "alters");
  out.applies = change.is_object() && change.value("applies", json()) == json(true);
  out.why_not = Get<std::string>(change, "why_not");
  out.where = Get<std::string>(change, "where");
  out.lines = GetTexts(change, "lines");
  out.lessens = GetTexts(change, "lessens");
  return out;
}

std::optional<FitFacts::Imported> ImportedOf(const json& file) {
  const auto imported = file.find("imported");
  if (imported == file.end() || !imported->is_object() || !Get<std::string>(*imported, "why_not").empty() ||
      Get<std::int64_t>(*imported, "parent") != getpid()) {
    return std::nullopt;
  }
  return FitFacts::Imported{{GetTexts(*imported, "modules"), GetTexts(*imported, "using")},
                            Get<double>(*imported, "seconds")};
}

FitFacts FitFactsOf(const json& file) {
  FitFacts out;
  if (file.is_object()) out.imported = ImportedOf(file);
  out.steps = Get<std::uint64_t>(file, "steps");
  out.trains = !file.is_object() || file.value("trains", json()) != json(false);
  for (const json& phase : GetArray(file, "phases")) {
    out.last_phase = std::max(out.last_phase, Get<std::uint64_t>(phase, "steps"));
  }
  if (const auto step = Get<std::uint64_t>(file, "failed_step"); step > 0) out.failed_step = step;
  for (const json& peak : GetArray(file, "peaks")) {
    out.peaks.push_back({Get<std::uint64_t>(peak, "steps"), Get<std::uint64_t>(peak, "allocated"),
                         Get<std::uint64_t>(peak, "reserved")});
  }
  for (const json& requests : GetArray(file, "requests")) {
    if (!requests.is_array() || requests.size() != 2 || !requests[0].is_number_unsigned() ||
        !requests[1].is_number_unsigned()) {
      continue;
    }
    out.requests.push_back({requests[0].get<std::uint64_t>(), requests[1].get<std::uint64_t>()});
  }
  out.drawn_seconds = Get<double>(file, "drawn_seconds");
  out.lengths_vary = file.is_object() && file.value("lengths_vary", json()) == json(true);
  for (const json& held : GetArray(file, "held")) {
    out.held.push_back({Get<std::string>(held, "what"), Get<std::uint64_t>(held, "bytes")});
  }
  out.host_bytes = Get<std::uint64_t>(file, "host_bytes");
  if (const auto diff = file.find("diff"); diff != file.end()) {
    out.diff = {Get<std::string>(*diff, "text"), GetTexts(*diff, "changes")};
  }
  if (const auto engine = file.find("engine"); engine != file.end() && engine->is_object()) {
    out.engine = {Get<double>(*engine, "share"), Get<std::uint64_t>(*engine, "needed"),
                  !Get<std::string>(*engine, "refused").empty()};
  }
  if (const auto work = file.find("work"); work != file.end() && work->is_object()) {
    out.work = {Get<std::uint64_t>(*work, "operations"), Get<std::uint64_t>(*work, "narrow_operations"),
                Get<std::uint64_t>(*work, "memory_bytes"), Get<std::uint64_t>(*work, "bus_bytes")};
  }
  if (const auto batch = file.find("batch"); batch != file.end() && batch->is_object()) {
    out.batch = {Get<std::uint64_t>(*batch, "size"), Get<std::uint64_t>(*batch, "samples"),
                 Get<std::string>(*batch, "where"), Get<std::string>(*batch, "why_not")};
  }
  for (const json& change : GetArray(file, "changes")) out.changes.push_back(FitChangeOf(change));
  return out;
}

// Whether it asked for the same memory, step by step, up to the end of one.
bool AsksAlike(const FitFacts& one, const FitFacts& other, std::uint64_t steps) {
  const std::size_t seen = std::min<std::size_t>(steps, other.requests.size());
  return seen > 0 && one.requests.size() >= seen &&
         std::equal(one.requests.begin(), one.requests.begin() + static_cast<std::ptrdiff_t>(seen),
                    other.requests.begin());
}

// The figures of the device that held most, in all processes together.
void SetPeaks(const RunResults& results, FitRow& row) {
  std::uint64_t device_bytes = results.peak_bytes, reserved_bytes = 0;
  for (const ProcessRun& run : results.runs) {
    device_bytes = std::max(device_bytes, run.PeakBytes());
    if (!run.torch.has_value()) continue;
    for (const TorchDevice& device : run.torch->devices) {
      reserved_bytes = std::max(reserved_bytes, device.peak_reserved_bytes);
    }
  }
  row.device_bytes = device_bytes;
  row.peak_reserved_bytes = reserved_bytes;
}

// The peak in ample room against the card; not known where live bytes fit and what is reserved does not.
void JudgeByPeak(const FitFacts& facts, std::uint64_t total_bytes, FitRow& row) {
  if (*row.device_bytes <= total_bytes) {
    row.verdict = FitVerdict::kFits;
    return;
  }
  const std::uint64_t outside = *row.device_bytes - std::min(*row.device_bytes, *row.peak_reserved_bytes);
  for (const FitFacts::Peak& peak : facts.peaks) {
    if (peak.allocated_bytes + outside <= total_bytes) continue;
    row.verdict = FitVerdict::kFails;
    row.failed_step = peak.step;
    return;
  }
}

// What the cache of an engine of vLLM has room for, where one told it.
std::optional<answers::FitCache> CacheOf(const RunResults& results) {
  for (const ProcessRun& run : results.runs) {
    if (!run.vllm.has_value() || run.vllm->tokens == 0) continue;
    return answers::FitCache{run.vllm->tokens, run.vllm->longest_request, run.vllm->most_requests};
  }
  return std::nullopt;
}

std::string WhyNotMade(const std::vector<std::string>& changes, const FitFacts& facts) {
  for (const std::string& name : changes) {
    const auto change =
        std::find_if(facts.changes.begin(), facts.changes.end(), [&](const FitChange& of) { return of.name == name; });
    if (change == facts.changes.end() || !change->applies) {
      return absl::StrCat(name, " was not made: ", change == facts.changes.end() ? "it is not known" : change->why_not);
    }
  }
  return "";
}

}  // namespace

bool RanOut(const RunResults& results) {
  return std::any_of(results.runs.begin(), results.runs.end(),
                     [](const ProcessRun& run) { return run.OutOfMemory() > 0; });
}

std::optional<FitFacts> ReadFitFacts(const std::string& folder) {
  std::optional<FitFacts> out;
  std::uint64_t host_bytes = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "fit-") || !absl::EndsWith(name, ".json")) continue;
    const absl::StatusOr<std::string> text = ReadSmallInput(entry.path().string());
    if (!text.ok()) continue;
    FitFacts facts = FitFactsOf(json::parse(*text, nullptr, false));
    host_bytes += facts.host_bytes;
    const auto most = [](const FitFacts& of) { return of.peaks.empty() ? 0 : of.peaks.back().reserved_bytes; };
    if (!out.has_value() || most(facts) > most(*out)) out = std::move(facts);
  }
  if (out.has_value()) out->host_bytes = host_bytes;
  return out;
}

std::optional<std::uint64_t> StopStep(const FitFacts& facts) {
  if (!facts.trains) return std::nullopt;
  const std::uint64_t decided = facts.peaks.empty() ? 0 : facts.peaks.back().step;
  const std::uint64_t stop = std::max(decided, facts.last_phase) + kStepsBehind;
  return stop < facts.steps ? std::optional(stop) : std::nullopt;
}

FitRow FitRuns::BaseRow() const {
  FitRow out;
  SetPeaks(base_.results, out);
  JudgeInRoom(base_.facts, out);
  return out;
}

void FitRuns::JudgeInRoom(const FitFacts& facts, FitRow& row) const {
  if (!facts.engine.has_value()) return JudgeByPeak(facts, base_.card.RoomBytes(), row);
  const double share_bytes = facts.engine->share * static_cast<double>(base_.card.total.bytes);
  const std::uint64_t free_bytes = base_.card.RoomBytes() - std::min(base_.card.RoomBytes(), base_.card.context.bytes);
  const bool fits =
      static_cast<double>(facts.engine->needed_bytes) <= share_bytes && share_bytes <= static_cast<double>(free_bytes);
  row.verdict = fits ? FitVerdict::kFits : FitVerdict::kFails;
}

FitRow FitRuns::RowOf(const Asked& asked, const RerunEnd& end) const {
  FitRow out;
  out.changes = asked.changes;
  out.ran_on_card = asked.on_card;
  const std::optional<FitFacts> facts = end.folder != nullptr ? ReadFitFacts(end.folder->path()) : std::nullopt;
  const bool is_refused = facts.has_value() && facts->engine.has_value() && facts->engine->is_refused;
  if (asked.on_card && (RanOut(end.results) || is_refused)) {
    out.verdict = FitVerdict::kFails;
    if (facts.has_value()) out.failed_step = facts->failed_step;
    return out;
  }
  out.why_not = end.why_not;
  out.is_untried = end.is_untried;
  if (out.why_not.empty() && RanOut(end.results)) out.why_not = "a request found no memory in any room";
  if (out.why_not.empty() && !facts.has_value()) out.why_not = "it called no model of PyTorch";
  if (out.why_not.empty()) out.why_not = WhyNotMade(Made(asked), *facts);
  const std::uint64_t steps = asked.makes_other_steps ? 1
                              : asked.is_whole        ? base_.facts.steps
                                                      : stop_.value_or(base_.facts.steps);
  if (out.why_not.empty() && facts->steps < steps) {
    out.why_not = absl::StrCat("it made ", facts->steps, " steps of ", steps);
  }
  if (!out.why_not.empty()) return out;
  SetPeaks(end.results, out);
  if (asked.is_whole) out.diff = facts->diff;
  out.host_bytes = facts->host_bytes;
  out.is_over_host = out.host_bytes > base_.host_memory_bytes;
  if (out.is_over_host) {
    out.verdict = FitVerdict::kFails;
  } else if (asked.on_card) {
    out.verdict = FitVerdict::kFits;
    out.cache = CacheOf(end.results);
  } else {
    JudgeInRoom(*facts, out);
  }
  return out;
}

std::vector<std::string> FitRuns::Made(const Asked& asked) const {
  std::vector<std::string> out = asked.changes;
  if (!always_.empty()) out.insert(out.begin(), always_);
  return out;
}

Rerun FitRuns::RerunOf(const Asked& asked) const {
  const std::string names = absl::StrJoin(Made(asked), ",");
  Rerun out{asked.changes.empty() ? "as it is" : absl::StrCat("with ", absl::StrJoin(asked.changes, ",")), base_.launch,
            !asked.machine.empty() ? asked.machine
            : asked.on_card        ? base_.card.text
                                   : InAmpleRoom(base_.card).text};
  if (!asked.program.empty()) {
    out.name = absl::StrJoin(asked.program, " ");
    out.launch.arguments = asked.program;
  }
  if (!names.empty()) out.launch.environment["ASHLAR_FIT"] = names;
  if (!leaves_draws_ || asked.is_whole) out.launch.environment.erase("ASHLAR_FIT_DRAWN");
  if (asked.on_card || !asked.machine.empty()) out.launch.environment.erase("ASHLAR_FIT_ROOM");
  if (asked.counts) out.launch.environment["ASHLAR_FIT_COUNTS"] = "1";
  if (stop_.has_value() && !asked.is_whole) out.launch.environment["ASHLAR_FIT_STOP"] = absl::StrCat(*stop_);
  out.can_be_forked = !asked.is_whole;
  return out;
}

std::vector<RerunEnd> FitRuns::RunAll(const std::vector<Asked>& asked, const Time& time) {
  std::vector<Rerun> reruns;
  for (const Asked& one : asked) reruns.push_back(RerunOf(one));
  return RunEach(reruns, time);
}

std::vector<RerunEnd> FitRuns::RunEach(const std::vector<Rerun>& reruns, const Time& time) {
  runs_ += reruns.size();
  return RunAgain(reruns,
                  {.at_once = at_once_,
                   .most_seconds = time.most_seconds,
                   .start_seconds = time.start_seconds,
                   .server = server_.get(),
                   .are_forks_final = time.are_forks_final},
                  relay_, progress_);
}

bool FitRuns::DoesTheSame(double most_seconds) {
  const RerunEnd end = std::move(RunAll({{}}, {.most_seconds = most_seconds, .are_forks_final = true}).front());
  const std::optional<FitFacts> facts = end.folder != nullptr ? ReadFitFacts(end.folder->path()) : std::nullopt;
  const std::uint64_t steps = stop_.value_or(base_.facts.steps);
  return end.why_not.empty() && facts.has_value() && facts->steps >= steps && AsksAlike(*facts, base_.facts, steps);
}

void FitRuns::BeginImports(std::size_t runs) {
  if (!base_.facts.imported.has_value() || base_.launch.has_fixed_addresses) return;
  const double saved = base_.facts.imported->seconds * static_cast<double>(runs);
  if (saved < 2 * base_.seconds) return;  // the server imports too, and its first fork is one that shows it
  if (progress_) progress_("importing, once for all runs");
  server_ = ForkServer::Start(RerunOf({}).launch, InAmpleRoom(base_.card).text, base_.facts.imported->imports);
}

void FitRuns::Shorten(std::size_t runs, double most_seconds) {
  const bool can_leave = base_.facts.drawn_seconds * static_cast<double>(runs) >= base_.seconds;
  if (server_ != nullptr && !server_->IsReadyWithin(most_seconds)) server_ = nullptr;
  leaves_draws_ = can_leave;
  if ((server_ == nullptr && !can_leave) || DoesTheSame(most_seconds)) return;
  leaves_draws_ = false;  // one of the two may do by itself, where both were tried
  if (server_ == nullptr || (can_leave && DoesTheSame(most_seconds))) return;
  server_ = nullptr;
  if (!can_leave) return;
  leaves_draws_ = true;
  leaves_draws_ = DoesTheSame(most_seconds);
}

std::vector<RerunEnd> FitRuns::RunWithHistories(const std::vector<Asked>& asked, const Time& time) {
  std::vector<Rerun> reruns;
  for (const Asked& one : asked) {
    reruns.push_back(RerunOf(one));
    reruns.back().launch.environment.erase("ASHLAR_HISTORY");
  }
  return RunEach(reruns, time);
}

RerunEnd FitRuns::RunWithNames(const Asked& asked, double most_seconds) {
  Rerun rerun = RerunOf(asked);
  rerun.launch.environment.erase("ASHLAR_HISTORY");
  rerun.launch.environment.erase("ASHLAR_NAMES");
  return std::move(RunEach({rerun}, {.most_seconds = most_seconds}).front());
}

void FitRuns::TakeKept(const RerunEnd& end) {
  kept_away_.insert(end.kept.begin(), end.kept.end());
  not_sent_.insert(end.not_sent.begin(), end.not_sent.end());
}

FitRuns::Proof FitRuns::Prove(const std::vector<std::string>& changes, double most_seconds) {
  const Asked asked = {.changes = changes, .on_card = true, .is_whole = true};
  RerunEnd end = std::move(RunWithHistories({asked}, {.most_seconds = most_seconds}).front());
  TakeKept(end);
  FitRow row = RowOf(asked, end);
  return {std::move(row), std::move(end)};
}

std::vector<std::optional<FitWork>> FitRuns::CountWork(const std::vector<std::vector<std::string>>& sets,
                                                       double most_seconds) {
  std::vector<Asked> asked;
  for (const std::vector<std::string>& set : sets) asked.push_back({.changes = set, .counts = true});
  std::vector<std::optional<FitWork>> out;
  for (const RerunEnd& end : RunAll(asked, {.most_seconds = most_seconds})) {
    const std::optional<FitFacts> facts = end.folder != nullptr ? ReadFitFacts(end.folder->path()) : std::nullopt;
    out.push_back(end.why_not.empty() && facts.has_value() ? facts->work : std::nullopt);
  }
  return out;
}

std::vector<FitRow> FitRuns::RunOnce(const std::vector<Asked>& asked, const Time& time) {
  const std::vector<RerunEnd> ends = RunAll(asked, time);
  std::vector<FitRow> out;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    out.push_back(RowOf(asked[i], ends[i]));
    TakeKept(ends[i]);
    cudnn_.Add(CudnnOf(ends[i].results));
  }
  return out;
}

std::vector<FitRow> FitRuns::Run(const std::vector<Asked>& asked, const Time& time) {
  std::vector<FitRow> out = RunOnce(asked, time);
  std::vector<Asked> on_card;
  std::vector<FitRow*> open;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].verdict != FitVerdict::kNotKnown || !out[i].why_not.empty()) continue;
    Asked again = asked[i];
    again.on_card = true;
    on_card.push_back(std::move(again));
    open.push_back(&out[i]);
  }
  if (on_card.empty()) return out;
  const std::vector<FitRow> again = RunOnce(on_card, {.most_seconds = time.most_seconds});
  for (std::size_t i = 0; i < again.size(); ++i) {
    open[i]->verdict = again[i].verdict;
    open[i]->failed_step = again[i].failed_step;
    open[i]->why_not = again[i].why_not;
    open[i]->ran_on_card = true;
  }
  return out;
}

}  // namespace ashlar::cli
