// The answer of `ashlar fit`: what to change in a program so that it fits on a card. Each row is a run of the program
// with changes made from outside; the launcher runs them.
//
//   FitAnswer answer = ...;
//   answer.base.verdict;            // FitVerdict::kFails
//   answer.rows[3].peak_reserved_bytes;
//   answer.set->changes;            // {"checkpointing"}: the cheapest that fits
//   std::cout << report::ToText(answer);
//
// Sizes are bytes, steps those of the optimizer, from 1.
#ifndef ASHLAR_COMMANDS_FIT_FIT_H_
#define ASHLAR_COMMANDS_FIT_FIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ashlar::answers {

// A change as the program's own run found it: ashlar_hollow/fit/change.py.
struct FitChange {
  std::string name, title;
  std::string group;   // of one group a set has one change at most
  int price = 0;       // only the order of prices
  std::string costs;   // in words; "none"
  std::string alters;  // what --allow must name; empty: results are those of the program as it is
  bool applies = false;
  std::string why_not;             // where it does not
  std::string where;               // "train.py:88"
  std::vector<std::string> lines;  // what the user writes there

  bool IsFree() const { return costs == "none" && alters.empty(); }
};

enum class FitVerdict : std::uint8_t { kNotKnown, kFits, kFails };

// A run with these changes.
struct FitRow {
  std::vector<std::string> changes;  // by name; empty: the program as it is
  FitVerdict verdict = FitVerdict::kNotKnown;
  std::optional<std::uint64_t> peak_reserved_bytes;  // of the allocator, in room that it does not fill
  std::optional<std::uint64_t> device_bytes;         // the same with all that lies outside: what the card must have
  std::optional<std::uint64_t> failed_step;          // where it fails, if that is known
  std::string why_not;                               // why the run tells nothing
  std::uint64_t operations = 0;                      // floating-point ones of a step, in a run of its own; 0: not known
  bool ran_on_card = false;                          // else in ample room as that card, whose peak decides
};

// The values of one argument of the program, or of its batch.
struct FitValues {
  struct Value {
    std::uint64_t value = 0;
    FitRow row;
  };
  std::string name;                      // "--batch-size", "batch"
  std::vector<Value> values;             // ascending; each a run on the card
  std::optional<std::uint64_t> largest;  // that fits
  std::optional<std::uint64_t> next;     // the least that was run above it, and does not fit
  std::string where;                     // of a batch that is changed from outside: the line of the program
  bool is_over = false;                  // the time was up before it was found
};

struct FitAnswer {
  std::vector<std::string> program;
  std::string card;  // "T4", or "a device"
  std::uint64_t total_bytes = 0;
  std::uint64_t steps = 0;                 // of the program as it is
  std::optional<std::uint64_t> stop_step;  // after which rows end; nullopt: they are whole
  std::vector<FitChange> changes;
  FitRow base;
  std::vector<FitRow> rows;          // of one change each
  std::vector<FitRow> sets;          // of several, in the order in which they were tried
  std::optional<FitRow> set;         // the cheapest that fits, run on the card to its end
  std::optional<FitValues> varied;   // then no change is made
  std::vector<std::string> allowed;  // kinds of altered results
  std::uint64_t runs = 0;
  std::uint64_t untried = 0;  // sets that were left when the time was up
  double seconds = 0;
  std::vector<std::string> kept_away;  // files that the runs would have written, and did not

  const FitChange& ChangeNamed(const std::string& name) const;  // which is there
  bool IsAllowed(const FitChange& change) const;
};

}  // namespace ashlar::answers

namespace ashlar::report {

// The same numbers in all.
std::string ToText(const answers::FitAnswer& answer);
std::string ToMarkdown(const answers::FitAnswer& answer);
std::string ToJson(const answers::FitAnswer& answer);
std::string FitSchema();  // docs/schemas/fit.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_FIT_FIT_H_
