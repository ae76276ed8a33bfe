// What libashlar_serve.so did in the processes of a run, as its files say (hollow/serve/counts.h).
//
//   std::vector<ServedProcess> served = ReadServed(folder);
//   Say(ToText(served));
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_SERVED_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_SERVED_H_

#include <string>
#include <vector>

#include "hollow/serve/counts.h"

namespace ashlar::cli {

struct ServedProcess {
  std::string process;  // its number
  serve::ServedCounts counts;
};

// By process. Files that hold no such counts, and processes that asked for nothing, are left out.
std::vector<ServedProcess> ReadServed(const std::string& folder);

// A line a process; where there is none, a line that says so.
std::string ToText(const std::vector<ServedProcess>& served);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_SERVED_H_
