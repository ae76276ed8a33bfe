// Signals on their way to the program that this process started: each arrives once, as without us.
//
//   SignalRelay relay(folder.path());         // before any thread is started
//   const pid_t program = relay.Fork(place);  // the new process calls TakeSignals() before it becomes the program
//   ... waits for the program's end ...
//   relay.EndProgram();
//
// One relay a process. The thread that makes it is the one that runs the program.
#ifndef ASHLAR_LAUNCHER_SIGNAL_RELAY_H_
#define ASHLAR_LAUNCHER_SIGNAL_RELAY_H_

#include <sys/types.h>

#include <memory>
#include <string>

namespace ashlar::cli {

// Of the program beside this process: in the same process group, or leading one of its own.
enum class ProgramGroup { kOurs, kOwn };

// SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT, SIGUSR1 and SIGUSR2 go to the program while it runs. One that was
// sent to this process alone goes to the program alone. One that was sent to the whole group, as a terminal's keys and
// batch systems do it, has reached a program of our group already, and goes to the whole group of one that leads its
// own. Without a program they end this process, and the folder goes first.
class SignalRelay {
 public:
  explicit SignalRelay(const std::string& folder);
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // As fork(), and from now on to the new process.
  pid_t Fork(ProgramGroup group);
  // There is none any more: what was sent until now was for it.
  void EndProgram();
  // From now on a signal that would end this process is noted instead, until it is held no longer.
  void Hold(bool is_held);
  bool HasBeenAskedToEnd() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread that waits for signals outlives the relay
};

// In the new process: the signals are as this process found them before it made a relay. Safe after a fork.
void TakeSignals();

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_SIGNAL_RELAY_H_
