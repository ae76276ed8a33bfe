// A process beside this one that tells what was sent to the group of both: Linux says of a signal who sent it, and not
// to whom.
//
//   SignalWitness witness;                                       // before any thread is started
//   ... a signal comes, which this process blocks and takes ...
//   if (witness.Saw({signal, code, sender}).value_or(false)) ... // the whole group got it
//
// It blocks all signals, so that one waits there until it is asked for, and ends with this process. One thread at a
// time.
#ifndef ASHLAR_LAUNCHER_SIGNAL_WITNESS_H_
#define ASHLAR_LAUNCHER_SIGNAL_WITNESS_H_

#include <sys/types.h>

#include <optional>

namespace ashlar::cli {

struct SignalThatCame {
  int signal = 0;
  int code = 0;  // si_code
  pid_t sender = 0;
};

class SignalWitness {
 public:
  SignalWitness();
  ~SignalWitness() { End(); }
  SignalWitness(const SignalWitness&) = delete;
  SignalWitness& operator=(const SignalWitness&) = delete;

  // nullopt where there is no witness, or no answer.
  std::optional<bool> Saw(const SignalThatCame& came) const;
  void End();

 private:
  pid_t process_ = -1;
  int questions_ = -1;
};

// Returns once a signal that is under way to this process's group has reached all of it: while Linux sends to a group
// it lets nobody change one.
void LetGroupSignalsArrive();

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_SIGNAL_WITNESS_H_
