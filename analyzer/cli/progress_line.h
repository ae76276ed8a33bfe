// How far a command is, as one line on stderr: on a terminal only, from the first second on, taken away at the end.
#ifndef ASHLAR_ANALYZER_CLI_PROGRESS_LINE_H_
#define ASHLAR_ANALYZER_CLI_PROGRESS_LINE_H_

#include <chrono>
#include <string>

namespace ashlar::cli {

// One thread at a time.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);

 private:
  bool is_terminal_;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_PROGRESS_LINE_H_
