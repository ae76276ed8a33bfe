#include "launcher/fit_cards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "analyzer/gpus/gpu_table.h"

namespace ashlar::cli {
namespace {

using answers::FitAnswer;
using answers::FitCard;
using answers::FitChange;
using answers::FitRow;
using answers::FitVerdict;
using Asked = FitRuns::Asked;

constexpr std::size_t kMostTries = 4;  // cards that one row is run as

bool TellsPeak(const FitRow& row) { return row.why_not.empty() && row.device_bytes.has_value(); }

std::vector<const gpus::Gpu*> CardsWith(std::uint64_t bytes) {
  std::vector<const gpus::Gpu*> out;
  for (const gpus::Gpu& gpu : gpus::Gpus()) {
    if (gpu.total_bytes.value >= bytes) out.push_back(&gpu);
  }
  return out;
}

void PutCard(const gpus::Gpu& gpu, FitCard& of) {
  of.card = std::string(gpu.name);
  of.total_bytes = gpu.total_bytes.value;
}

FitCard ByPeak(FitRow row) {
  FitCard out;
  if (TellsPeak(row)) {
    if (const auto cards = CardsWith(*row.device_bytes); !cards.empty()) PutCard(*cards.front(), out);
  }
  out.row = std::move(row);
  return out;
}

// The program as it is on a card of another capability may take other kernels: the next card is tried.
absl::Status ProveCard(MachineFlags flags, double most_seconds, FitRuns& runs, FitCard& of) {
  if (!TellsPeak(of.row)) return absl::OkStatus();
  std::vector<const gpus::Gpu*> cards = CardsWith(*of.row.device_bytes);
  cards.resize(std::min(cards.size(), kMostTries));
  for (const gpus::Gpu* gpu : cards) {
    flags.device = std::string(gpu->name);
    const absl::StatusOr<HollowMachine> machine = ReadMachine(flags);
    if (!machine.ok()) return machine.status();
    const FitRow proof =
        runs.Run({{.changes = of.row.changes, .on_card = true, .is_whole = true, .machine = machine->text}},
                 {.most_seconds = most_seconds})
            .front();
    PutCard(*gpu, of);
    of.is_proven = proof.verdict == FitVerdict::kFits;
    if (of.is_proven) break;
  }
  return absl::OkStatus();
}

// Of each group the change that needs least, where it needs less than the program as it is.
std::vector<std::string> WhatHelps(const FitAnswer& answer, const FitRow& base, const std::vector<FitCard>& alone) {
  std::vector<std::pair<const FitChange*, std::uint64_t>> kept;
  for (const FitCard& of : alone) {
    if (of.row.changes.size() != 1 || !TellsPeak(of.row) || *of.row.device_bytes >= *base.device_bytes) continue;
    const FitChange& change = answer.ChangeNamed(of.row.changes.front());
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const auto& other) {
      return !change.group.empty() && other.first->group == change.group;
    });
    if (same == kept.end()) {
      kept.emplace_back(&change, *of.row.device_bytes);
    } else if (*of.row.device_bytes < same->second) {
      *same = {&change, *of.row.device_bytes};
    }
  }
  std::vector<std::string> out;
  for (const auto& [change, bytes] : kept) out.push_back(change->name);
  return out;
}

// Behind the program as it is, which stays first.
void PutLeastLast(std::vector<FitCard>& cards) {
  const auto needs = [](const FitCard& of) { return TellsPeak(of.row) ? *of.row.device_bytes : UINT64_MAX; };
  const auto least = std::min_element(cards.begin() + 1, cards.end(),
                                      [&](const FitCard& a, const FitCard& b) { return needs(a) < needs(b); });
  if (least != cards.end()) std::rotate(least, least + 1, cards.end());
}

}  // namespace

absl::StatusOr<std::vector<FitCard>> RunCards(const MachineFlags& flags, double most_seconds, double budget,
                                              FitRuns& runs, const FitAnswer& answer) {
  const FitRuns::Time time = {.most_seconds = most_seconds, .start_seconds = budget};
  std::vector<Asked> asked;
  if (!answer.with.empty()) asked.push_back({answer.with});
  for (const FitChange& change : answer.changes) {
    if (answer.with.empty() && change.applies && answer.IsAllowed(change)) asked.push_back({{change.name}});
  }
  std::vector<FitCard> out = {ByPeak(answer.base)};
  for (FitRow& row : runs.Run(asked, time)) out.push_back(ByPeak(std::move(row)));
  if (answer.with.empty()) {
    const std::vector<std::string> together = WhatHelps(answer, answer.base, out);
    if (together.size() > 1) out.push_back(ByPeak(runs.Run({{together}}, time).front()));
  }
  PutLeastLast(out);
  absl::Status status = ProveCard(flags, most_seconds, runs, out.front());
  if (out.size() > 1) status.Update(ProveCard(flags, most_seconds, runs, out.back()));
  if (!status.ok()) return status;
  return out;
}

}  // namespace ashlar::cli
