// Runs a program again, several times side by side and each a little differently, without harm to what its first run
// left: another device, other arguments, another environment.
//
//   std::vector<RerunEnd> ends = RunAgain({{"as T4", launch, t4.text}, {"as L4", launch, l4.text}},
//                                         {.at_once = 2, .most_seconds = 90}, relay, progress);
//   if (ends[0].why_not.empty()) Use(ends[0].results);
//
// Each has a session, a folder, a TMPDIR, a port and caches of its own, no terminal and no input; its output goes into
// a file. What it writes elsewhere goes nowhere (apart.h). It ends with all that it started after the time
// given, and when this process is asked to end, which then goes on.
#ifndef ASHLAR_LAUNCHER_RERUN_H_
#define ASHLAR_LAUNCHER_RERUN_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "launcher/fork_server.h"
#include "launcher/results.h"
#include "launcher/run_program.h"

namespace ashlar::cli {

struct Rerun {
  std::string name;     // for who waits: "as T4"
  Launch launch;        // as of a first run: the folder that it names becomes the rerun's own
  std::string machine;  // the text of the file `machine`
  bool can_be_forked = false;
};

struct RerunLimits {
  std::size_t at_once = 1;
  double most_seconds = 0;                                         // of each
  double start_seconds = std::numeric_limits<double>::infinity();  // none begins later
  ForkServer* server = nullptr;                                    // for those that can be forked
  bool are_forks_final = false;  // else one that fails for no want of memory is run by itself
};

struct RerunEnd {
  bool is_untried = false;                 // it was not begun, as the time to begin was over
  int exit_code = 128 + 9;                 // as a shell has it; of one that was killed or not begun as of SIGKILL
  std::string why_not = {};                // it did not come to its end, in one line; empty: it did, with exit code 0
  RunResults results = {};                 // its files lie in `folder`
  std::vector<std::string> kept = {};      // files that it would have written, and did not
  std::vector<std::string> not_sent = {};  // "HOST:PORT" that it would have connected to, and did not
  std::unique_ptr<RunFolder> folder = {};
};

// How many go side by side, by processors and by the host's memory, of which one takes so much.
std::size_t RerunsAtOnce(std::uint64_t host_bytes);
// What one may take of a program whose first run took so long.
double MostSecondsOf(double first_seconds);

// One for each, in their order. A port that a rerun found taken by one beside it is no end: it runs once more, alone.
std::vector<RerunEnd> RunAgain(const std::vector<Rerun>& reruns, const RerunLimits& limits, SignalRelay& relay,
                               const std::function<void(const std::string&)>& progress);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RERUN_H_
