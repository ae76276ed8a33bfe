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
  std::string why_not;               // where it does not
  std::string where;                 // "train.py:88"
  std::vector<std::string> lines;    // what the user writes there
  std::vector<std::string> lessens;  // of what a step needs in any case (FitHeld): what it makes less of

  bool IsFree() const { return costs == "none" && alters.empty(); }
};

enum class FitVerdict : std::uint8_t { kNotKnown, kFits, kFails };

// What a step computes and moves, counted in a run of its own.
struct FitWork {
  std::uint64_t operations = 0;         // floating-point ones of matrix products, convolutions and attention
  std::uint64_t narrow_operations = 0;  // those of them in 16 bits
  std::uint64_t memory_bytes = 0;       // that kernels read and write of the device's memory
  std::uint64_t bus_bytes = 0;          // between the host and the device
};

// What a card does in a second at most.
struct FitSpeed {
  std::uint64_t operations = 0, narrow_operations = 0, memory_bytes = 0;
};

// The least time of a step on a card, by its figures: the operations, or the traffic, whichever takes longer.
double RooflineSeconds(const FitWork& work, const FitSpeed& speed);

// Live in each step of the optimizer, whatever else is changed: "parameters", "gradients", "states".
struct FitHeld {
  std::string what;
  std::uint64_t bytes = 0;
};

// What changes write into the program's own source, where their places are known.
struct FitDiff {
  std::string text;                  // for patch -p0; empty: none can be written there
  std::vector<std::string> changes;  // that it has whole
};

// What an engine of vLLM has for keys and values.
struct FitCache {
  std::uint64_t tokens = 0;
  std::uint64_t longest_request = 0;  // tokens of one at most
  std::uint64_t most_requests = 0;    // at once
};

// A run with these changes.
struct FitRow {
  std::vector<std::string> changes;  // by name; empty: the program as it is
  FitVerdict verdict = FitVerdict::kNotKnown;
  std::optional<std::uint64_t> peak_reserved_bytes;  // of the allocator, in room that it does not fill
  std::optional<std::uint64_t> device_bytes;         // the same with all that lies outside: what the card must have
  std::optional<std::uint64_t> failed_step;          // where it fails, if that is known
  std::string why_not;                               // why the run tells nothing
  std::uint64_t host_bytes = 0;                      // that the changes keep on the host in the device's stead
  bool is_over_host = false;                         // which has not so much: that is why it fails
  FitDiff diff;                                      // of a run to its end
  std::optional<FitWork> work;                       // of a step, in a run of its own
  std::optional<FitCache> cache;                     // of an engine that ran on the card
  bool ran_on_card = false;                          // else in ample room as that card, whose peak decides
  bool is_untried = false;                           // the time was up before it could begin
};

// The requests of a whole run, replayed on the card under other settings of the allocator.
struct FitSetting {
  std::vector<std::string> changes;       // of the run
  std::string conf;                       // the best setting; empty: that of the run itself
  bool is_own = false;                    // it is Ashlar's own allocator, not PyTorch's with a setting
  bool fits = false;                      // no request fails in the replay
  std::uint64_t peak_reserved_bytes = 0;  // of the replay
  std::string why_not;                    // why the run tells nothing
};

// A change of the program that no run can make from outside: what its trace says that it would save.
struct FitEstimate {
  std::string change;              // what to do
  std::string where;               // "train.py:88 forward"; empty: no line is known
  std::uint64_t bytes = 0;         // that the cause which it is against holds where the program fails, or at its peak
  std::vector<std::string> lines;  // to write
};

// The values of one argument of the program, or of its batch.
struct FitValues {
  struct Value {
    std::uint64_t value = 0;
    FitRow row;
  };
  // What is looked for: the largest value that fits, the longest context, or the least number of cards.
  enum class Goal : std::uint8_t { kLargest, kLongest, kFewest };
  Goal goal = Goal::kLargest;
  std::string name;                    // "--batch-size", "batch"
  std::vector<Value> values;           // ascending; each a run on the card
  std::optional<std::uint64_t> found;  // the best that fits
  std::optional<std::uint64_t> next;   // the nearest beyond it that was run, and does not fit
  std::string where;                   // of a batch that is changed from outside: the line of the program
  bool is_over = false;                // the time was up before it was found
};

// The least card of the table that has room for a run.
struct FitCard {
  FitRow row;        // in ample room
  std::string card;  // "L4"; empty: none of the table has room
  std::uint64_t total_bytes = 0;
  bool is_proven = false;  // it was run as that card, on it and to its end; else its peak says so
};

struct FitAnswer {
  std::vector<std::string> program;
  std::string card;  // "T4", or "a device"
  std::uint64_t total_bytes = 0;
  std::optional<FitSpeed> speed;  // nullopt: no card of the table was named
  std::vector<FitHeld> held;
  std::uint64_t outside_bytes = 0;         // of the card: the context
  std::uint64_t host_memory_bytes = 0;     // what the host has for all that is kept there
  std::uint64_t steps = 0;                 // of the program as it is
  std::optional<std::uint64_t> stop_step;  // after which rows end; nullopt: they are whole
  std::vector<FitChange> changes;
  FitRow base;
  std::vector<FitRow> rows;                   // of one change each
  std::vector<FitRow> sets;                   // of several, in the order in which they were tried
  std::optional<FitRow> set;                  // the cheapest that fits, run on the card to its end
  std::vector<FitSetting> settings;           // of the set, and of what is within a tenth of the card
  std::vector<FitEstimate> estimates;         // by the trace of the program as it is, on the card
  std::optional<FitValues> varied;            // then no set is looked for
  std::optional<std::vector<FitCard>> cards;  // of --goal cards: the program as it is first, the least card last
  std::vector<std::string> with;              // changes that --with has in each of these runs
  // Where lengths vary: each run but the first begins with the longest samples in one batch.
  bool has_worst_first = false;
  std::string why_no_worst;                      // why that could not be made, where they vary
  std::optional<std::uint64_t> own_order_bytes;  // peak reserved of the program in its own order
  // Rows leave out large random fills of host memory, without which the program as it is asked for the same memory.
  bool leaves_draws = false;
  std::string workspaces;            // what --workspaces cudnn did, in a sentence; empty: it was not given
  std::vector<std::string> allowed;  // kinds of altered results
  std::uint64_t runs = 0;
  std::uint64_t untried = 0;          // sets that were left when the time was up
  std::uint64_t untried_changes = 0;  // that have no row, as it was up
  std::uint64_t pruned = 0;           // sets that cannot fit: what they leave as it is takes more than the card has
  double seconds = 0;
  std::vector<std::string> kept_away;  // files that the runs would have written, and did not
  std::vector<std::string> not_sent;   // "HOST:PORT" that they would have connected to, and did not

  const FitChange& ChangeNamed(const std::string& name) const;  // which is there
  bool IsAllowed(const FitChange& change) const;
  // Of one change: how much longer a step takes, in percent, by what was counted in its own row; else the rough price
  // of the table. What the bus takes is not known of a card, and neither is a row's price that moves more over it.
  double PriceOf(const FitChange& change) const;
  // What a step needs with these changes at least: all that is held and that none of them makes less of.
  std::uint64_t LeastBytes(const std::vector<std::string>& names) const;
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
