// Shows how far a command is, as one line on stderr: on a terminal only, from the first second on. The line goes away
// at the end.
//
//   ProgressLine line;                             // one of a command
//   line.Show("rank0.pickle: what-ifs 3 of 8");    // "rank0.pickle: what-ifs 3 of 8 (41 s)"
//   ProgressLine::End();                           // before anything else is printed; Fail and Print do it
//
// While a large file is read the line has how much of it, the rate and the time left: "  41 %, 390 MB/s, 3 s left".
// The seconds are those since the command began: they go on where a stage is a long one. Threads: any may call Show.
#ifndef ASHLAR_CONSOLE_PROGRESS_LINE_H_
#define ASHLAR_CONSOLE_PROGRESS_LINE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace ashlar::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);
  // The same as a function; the line outlives it.
  std::function<void(const std::string&)> Shower();

  // Takes the line away, if there is one, for good.
  static void End();

 private:
  void Stop();
  void Paint();
  void Draw() const;

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::string text_;
  std::thread painter_;  // none where stderr is no terminal
};

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_PROGRESS_LINE_H_
