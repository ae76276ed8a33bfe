// A tuner that never guesses: component analyzer (ashlar::analyzer). While a program runs it replays the last whole
// steps of its recording under other settings. Where one of them is proven to need less memory, it tells so, or
// switches to it.
//
//   auto recorder = *ashlar::Recorder::Ring(allocator, {.ring_bytes = 8 * ashlar::kMiB});
//   ashlar::Tuner tuner(allocator, *recorder, {.may_switch = true, .on_decision = Log});
//   ...                            // a thread of its own looks every ten seconds
//
//   ashlar::Tuner tuner(allocator, *recorder, {.pause = std::chrono::milliseconds(0)});
//   ashlar::TunerDecision decision = tuner.Look();       // or by hand
//
// The proof: the steps are found in the requests, or told by StepEnded. As recorded they must replay to every address.
// Under the other settings the same requests, from the same state, must need `least_gain` less reserved memory at their
// peak, or have fewer failed requests or retries, and nothing of it may be worse. Settings that cannot change while the
// allocator runs are tried from an empty allocator, and only advised: "start with expandable_segments:True".
//
// A switch decides requests to come (docs/library/settings.md has what can change); memory that is reserved stays so
// until it is returned. After a switch the tuner looks whether the steps since gain what was asked for against the
// settings before, replayed over the same steps; where they do not it switches back, says so, and never tries that
// setting again. docs/library/tuner.md.
//
// Threads: any may call any function, beside the program's requests. It makes no call to the device. The allocator
// stands still only while its segments are copied. The tuner's thread ends in the destructor, which waits for the
// replay that is under way. Allocator and recorder outlive the tuner. In a child that fork makes, the tuner is idle.
// Cost: a look takes tens of replays of the ring's events, one after the other.
#ifndef ASHLAR_TUNER_H_
#define ASHLAR_TUNER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/allocator.h"
#include "ashlar/export.h"
#include "ashlar/recorder.h"

namespace ashlar {

struct TunerDecision {
  enum class Kind : std::uint8_t {
    kNothing,       // nothing is proven to gain: `text` says what was found
    kAdvised,       // `conf` gains, and is not switched to: it cannot be, or may not
    kSwitched,      // to `conf`
    kKept,          // the last switch gains what was asked for
    kSwitchedBack,  // it does not: `conf` is what was before
    kFailed,        // the recording could not be read, or the switch was refused
  };
  Kind kind = Kind::kNothing;
  std::string conf = {};                       // whole, as the allocator takes it
  std::uint64_t peak_bytes = 0;                // reserved in the steps that were looked at
  std::uint64_t promised_bytes = 0;            // the same under `conf`, where one is named
  std::uint64_t steps = 0;                     // that were replayed
  std::string text = "no look was taken yet";  // one line, with the numbers
};

// What a decision does to the allocator is said here, so that the explainer's library needs no other.
struct TunerHost {
  std::function<absl::StatusOr<std::string>()> recording;
  std::function<std::uint64_t()> event_count;
  std::function<absl::Status(const std::string& conf)> change_settings;
};

struct TunerOptions {
  bool may_switch = false;                  // else it only advises
  double least_gain = 0.05;                 // of the peak of reserved memory
  std::chrono::milliseconds pause{10'000};  // between looks; 0: no thread looks, only Look
  bool may_borrow = false;                  // whether borrow_across_streams may be tried
  // Told each decision that differs from the one before, on the thread that looked, and no lock is held.
  std::function<void(const TunerDecision&)> on_decision = {};
};

class Tuner {
 public:
  // `recorder` is a ring of this allocator.
  Tuner(Allocator& allocator, Recorder& recorder, const TunerOptions& options = {})
      : Tuner(TunerHost{[&recorder] { return recorder.Bytes(); }, [&recorder] { return recorder.event_count(); },
                        [&allocator](const std::string& conf) { return allocator.ChangeSettings(conf); }},
              options) {}
  // For another library's allocator.
  ASHLAR_EXPORT Tuner(TunerHost host, const TunerOptions& options);
  ASHLAR_EXPORT ~Tuner();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // A step of the program ends here. From the first call on, steps are these, and none are looked for.
  ASHLAR_EXPORT void StepEnded();
  // Looks now, on the calling thread.
  ASHLAR_EXPORT TunerDecision Look();
  ASHLAR_EXPORT TunerDecision last() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar

#endif  // ASHLAR_TUNER_H_
