// The table of cards of a dry run without a card, whose program is run again as cards of other compute capabilities:
// only a run as such a card knows which kernels, and so which memory, the program takes there.
//
//   absl::StatusOr<CardChoice> choice = ReadCardChoice({.cards = "near"});
//   AddCards(*choice, {machine_flags, launch, seconds, host_bytes}, relay, progress, report);
//   report.cards->rows; report.card_runs.runs;
//
// The first run's answer stays as it is, whatever becomes of the others.
#ifndef ASHLAR_LAUNCHER_CARD_RUNS_H_
#define ASHLAR_LAUNCHER_CARD_RUNS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/cards.h"
#include "launcher/dry_run_report.h"
#include "launcher/run_program.h"

namespace ashlar::cli {

struct CardFlags {
  std::string cards;  // "near", "all", "T4,L4"; empty: not given
  bool once = false;
};

void AddCardFlags(Command& app, CardFlags& flags);

struct CardChoice {
  enum class Which : std::uint8_t { kNone, kNear, kAll, kNamed };
  Which which = Which::kNear;
  Cards named;
  bool is_asked = false;  // by the flag: then a program of any length is run again
};

// Errors name the flag.
absl::StatusOr<CardChoice> ReadCardChoice(const CardFlags& flags);

// The run that there was.
struct FirstRun {
  MachineFlags machine;
  Launch launch;
  double seconds = 0;
  std::uint64_t host_bytes = 0;  // resident memory, of the largest process
};

// Why the program is not run again at all; empty: it may be.
std::string WhyNotRunAgain(const CardChoice& choice, const FirstRun& first);

void AddCards(const CardChoice& choice, const FirstRun& first, SignalRelay& relay, const answers::Progress& progress,
              RunReport& report);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_CARD_RUNS_H_
