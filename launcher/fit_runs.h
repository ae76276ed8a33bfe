// The runs of `ashlar fit`: a program with changes made from outside, on a card or in ample room as that card, and what
// each tells.
//
//   FitRuns runs(first, at_once, relay, progress);
//   std::vector<answers::FitRow> rows = runs.Run({{{"half-batch"}}, {{"checkpointing"}}}, {.most_seconds = 90});
//
// In ample room a run has the peak that the program needs. Where that is more than the card has, and live bytes alone
// are not, the run is made once more on the card: an allocator that gives its cache back may still do.
#ifndef ASHLAR_LAUNCHER_FIT_RUNS_H_
#define ASHLAR_LAUNCHER_FIT_RUNS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "commands/fit/fit.h"
#include "launcher/fork_server.h"
#include "launcher/machine.h"
#include "launcher/rerun.h"
#include "launcher/results.h"
#include "launcher/run_program.h"

namespace ashlar::cli {

// What a process of a run left of where it was: fit-PID.json of ashlar_hollow/fit/facts.py.
struct FitFacts {
  struct Peak {
    std::uint64_t step = 0, allocated_bytes = 0, reserved_bytes = 0;
  };
  std::uint64_t steps = 0;
  bool trains = true;            // else a step is a call of the model
  std::uint64_t last_phase = 0;  // steps that were done when something new began: evaluation, a larger batch
  std::optional<std::uint64_t> failed_step;
  std::vector<Peak> peaks;  // where one grew, in order
  struct Requests {
    std::uint64_t count = 0, bytes = 0;
    bool operator==(const Requests&) const = default;
  };
  std::vector<Requests> requests;  // of PyTorch's allocator, all up to the end of each step
  double drawn_seconds = 0;        // that large random fills in host memory took
  // Up to the first call of a module, by the command's own process; nullopt: a fork of another that has imported as
  // much would not be the same program.
  struct Imported {
    ForkImports imports;
    double seconds = 0;
  };
  std::optional<Imported> imported;
  std::vector<answers::FitChange> changes;
  bool lengths_vary = false;  // of the batches that it trains with
  std::vector<answers::FitHeld> held;
  std::uint64_t host_bytes = 0;  // that its changes keep on the host, of all processes
  answers::FitDiff diff;         // of its changes
  // An engine of vLLM, which takes a share of the card whatever it needs.
  struct Engine {
    double share = 0;
    std::uint64_t needed_bytes = 0;  // of that share, to serve one request of the greatest length
    bool is_refused = false;         // it did not start
  };
  std::optional<Engine> engine;
  std::optional<answers::FitWork> work;  // of a step; nullopt: not counted
  // What its training is fed by: batches of so many, of so many samples; 0: not known.
  struct Batch {
    std::uint64_t size = 0, samples = 0;
    std::string where, why_not;
  } batch;
};

// Whether a request of the program found no memory.
bool RanOut(const RunResults& results);

// Of the process that reserved most; nullopt: none trained by PyTorch.
std::optional<FitFacts> ReadFitFacts(const std::string& folder);

// The program's own run, in ample room.
struct FitBase {
  Launch launch;
  HollowMachine card;
  double seconds = 0;
  std::uint64_t host_bytes = 0;         // of the program
  std::uint64_t host_memory_bytes = 0;  // that the host has for what changes keep there
  FitFacts facts;
  RunResults results;
};

// The step after which rows end: two behind the one that decided, and behind the last new phase; nullopt: they are
// whole.
std::optional<std::uint64_t> StopStep(const FitFacts& facts);

class FitRuns {
 public:
  struct Asked {
    std::vector<std::string> changes = {};
    bool on_card = false;                   // else in ample room, and on the card where only that can tell
    bool is_whole = false;                  // else it ends at the stop step
    std::vector<std::string> program = {};  // with other arguments than the first run had; empty: with its own
    bool counts = false;                    // it is run for what a step computes and moves, in ample room
    bool makes_other_steps = false;         // than the first run did, more or fewer
    std::string machine = {};               // the text of another one than the card; empty: the card, or its room
  };

  FitRuns(const FitBase& base, std::size_t at_once, SignalRelay& relay,
          const std::function<void(const std::string&)>& progress)
      : base_(base),
        stop_(StopStep(base.facts)),
        at_once_(at_once),
        relay_(relay),
        progress_(progress),
        cudnn_(CudnnOf(base.results)) {}

  struct Time {
    double most_seconds = 0;                                         // of one run
    double start_seconds = std::numeric_limits<double>::infinity();  // none begins later
    bool are_forks_final = false;                                    // as RerunLimits has it
  };

  // One each, in their order.
  std::vector<answers::FitRow> Run(const std::vector<Asked>& asked, const Time& time);
  // What a step of each set of changes computes and moves, in runs of their own; nullopt: not known.
  std::vector<std::optional<answers::FitWork>> CountWork(const std::vector<std::vector<std::string>>& sets,
                                                         double most_seconds);
  // With their histories, side by side.
  std::vector<RerunEnd> RunWithHistories(const std::vector<Asked>& asked, const Time& time);
  // With the names of what it holds as well: what a page shows.
  RerunEnd RunWithNames(const Asked& asked, double most_seconds);
  struct Proof {
    answers::FitRow row;
    RerunEnd end;  // with its history
  };
  // On the card itself, to the program's end.
  Proof Prove(const std::vector<std::string>& changes, double most_seconds);
  // A process begins to import what runs import, where the imports of so many are worth it.
  void BeginImports(std::size_t runs);
  // From here on runs that end at the stop step are forked from that process, and leave out large random fills where
  // that is worth it for `runs` that follow: each only where the program as it is asks so for the same memory at each
  // step.
  void Shorten(std::size_t runs, double most_seconds);
  // A change that each run from here on has as well, and no row names.
  void PutAlways(const std::string& change) { always_ = change; }
  // Of the base's own figures.
  answers::FitRow BaseRow() const;

  std::optional<std::uint64_t> stop() const { return stop_; }
  bool leaves_draws() const { return leaves_draws_; }
  std::size_t at_once() const { return at_once_; }
  std::uint64_t runs() const { return runs_; }
  const libraries::CudnnUse& cudnn() const { return cudnn_; }  // of the base and of all rows
  const std::set<std::string>& kept_away() const { return kept_away_; }
  const std::set<std::string>& not_sent() const { return not_sent_; }

 private:
  std::vector<std::string> Made(const Asked& asked) const;
  // Whether a run of the program as it is asks for the memory that the first one asked for.
  bool DoesTheSame(double most_seconds);
  Rerun RerunOf(const Asked& asked) const;
  std::vector<RerunEnd> RunAll(const std::vector<Asked>& asked, const Time& time);
  std::vector<RerunEnd> RunEach(const std::vector<Rerun>& reruns, const Time& time);
  std::vector<answers::FitRow> RunOnce(const std::vector<Asked>& asked, const Time& time);
  answers::FitRow RowOf(const Asked& asked, const RerunEnd& end) const;
  void TakeKept(const RerunEnd& end);
  void JudgeInRoom(const FitFacts& facts, answers::FitRow& row) const;

  const FitBase& base_;
  const std::optional<std::uint64_t> stop_;
  const std::size_t at_once_;
  SignalRelay& relay_;
  const std::function<void(const std::string&)>& progress_;
  std::uint64_t runs_ = 0;
  std::string always_;
  bool leaves_draws_ = false;
  std::unique_ptr<ForkServer> server_;
  std::set<std::string> kept_away_;
  std::set<std::string> not_sent_;
  libraries::CudnnUse cudnn_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_RUNS_H_
