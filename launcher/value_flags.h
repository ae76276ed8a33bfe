// What lines of a program read of the device, where no kernel computes it: --value FILE:LINE=VALUE.
//
//   if (absl::Status status = CheckValues(texts); !status.ok()) return Fail(kUsage, status);
//   PutValues(texts, environment);
#ifndef ASHLAR_LAUNCHER_VALUE_FLAGS_H_
#define ASHLAR_LAUNCHER_VALUE_FLAGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "console/command_line.h"

namespace ashlar::cli {

// What came of one flag in a process.
struct GivenValue {
  std::string flag;  // "train.py:88=0.5"
  std::uint64_t reads = 0;
  std::string why_not = {};  // of a read of its line that it was not given to; empty: none
};

// A line that read values of the device.
struct ReadingLine {
  std::string line;  // "train.py:88 step"
  std::uint64_t count = 0;
};

void AddValueFlag(Command& app, std::vector<std::string>& texts);

// InvalidArgument names the text, and what is wrong with it.
absl::Status CheckValues(const std::vector<std::string>& texts);

// For the Python side of the program.
void PutValues(const std::vector<std::string>& texts, std::map<std::string, std::string>& environment);

// "--value train.py:88=0.5 (12 times), model.py:7=3 (once)"; empty: none was read.
std::string ValuesThatWereRead(const std::vector<GivenValue>& values);
// Of each that was not given where it was to be, a line: why, and which lines did read values.
std::vector<std::string> ValuesThatWereNot(const std::vector<GivenValue>& values,
                                           const std::vector<ReadingLine>& lines);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_VALUE_FLAGS_H_
