#include "ashlar/tuner.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/tuner/look.h"

namespace ashlar {
namespace {

using tuner::Figures;
using tuner::LookFinding;
using Kind = TunerDecision::Kind;

constexpr std::size_t kMostStepEnds = 1000;

TunerDecision Decided(Kind kind, std::string conf, const Figures& now, const Figures& promised, std::uint64_t steps,
                      std::string text) {
  return {kind, std::move(conf), now.peak_reserved_bytes, promised.peak_reserved_bytes, steps, std::move(text)};
}

}  // namespace

struct Tuner::Impl {
  // What was switched to, and not yet seen to gain.
  struct Switch {
    std::string from;
    std::string to;
    std::uint64_t steps = 0;  // of the proof
  };

  Impl(TunerHost own_host, TunerOptions own_options) : host(std::move(own_host)), options(std::move(own_options)) {}

  TunerDecision Look() {
    const std::lock_guard<std::mutex> one_look(looking);
    TunerDecision decision = Decide();
    bool is_new = false;
    {
      const std::lock_guard<std::mutex> guard(mutex);
      is_new = decision.kind != last.kind || decision.conf != last.conf || decision.text != last.text;
      last = decision;
    }
    if (is_new && options.on_decision) options.on_decision(decision);
    return decision;
  }

  // --- under `looking` ---
  TunerDecision Decide() {
    const absl::StatusOr<std::string> bytes = host.recording();
    if (!bytes.ok()) return {.kind = Kind::kFailed, .text = std::string(bytes.status().message())};
    tuner::LookOptions look_options{
        .least_gain = options.least_gain, .may_borrow = options.may_borrow, .passed_over = passed_over};
    {
      const std::lock_guard<std::mutex> guard(mutex);
      look_options.step_ends.assign(step_ends.begin(), step_ends.end());
    }
    if (observed.has_value()) look_options.compared_conf = observed->from;
    const absl::StatusOr<tuner::Look> look = tuner::LookAt(*bytes, look_options);
    if (!look.ok()) return {.kind = Kind::kFailed, .text = std::string(look.status().message())};
    if (observed.has_value() && look->compared.has_value()) {
      if (look->steps < observed->steps) {
        return {.text = absl::StrCat("switched to ", observed->to, ": ", look->steps, " of the ", observed->steps,
                                     " steps that tell what it gains are seen")};
      }
      if (look->now == *look->compared && look->now.peak_reserved_bytes <= look->least_bytes) {
        return {.text = absl::StrCat("switched to ", observed->to, ": ", look->steps,
                                     " steps needed no more than what was reserved, and do not tell what it gains")};
      }
      return Judge(*look);
    }
    return DecideBy(*look);
  }

  // The steps since the switch, against the same under what was before.
  TunerDecision Judge(const tuner::Look& look) {
    const Switch judged = *std::exchange(observed, std::nullopt);
    const std::string seen = absl::StrCat(tuner::InsteadOf(look.now, *look.compared), " in ", look.steps, " steps");
    if (tuner::Gains(look.now, *look.compared, options.least_gain)) {
      return Decided(Kind::kKept, judged.to, look.now, look.now, look.steps,
                     absl::StrCat("kept ", judged.to, ": ", seen));
    }
    passed_over.push_back(judged.to);
    if (const absl::Status status = host.change_settings(judged.from); !status.ok()) {
      return {.kind = Kind::kFailed, .conf = judged.from, .text = std::string(status.message())};
    }
    return Decided(Kind::kSwitchedBack, judged.from, look.now, *look.compared, look.steps,
                   absl::StrCat("switched back to ", judged.from.empty() ? "the default settings" : judged.from, ": ",
                                judged.to, " does not gain what it promised, ", seen));
  }

  TunerDecision DecideBy(const tuner::Look& look) {
    if (look.finding == LookFinding::kLive) {
      const tuner::Tried& best = *look.live;
      if (!options.may_switch) {
        return Decided(Kind::kAdvised, best.conf, look.now, best.figures, look.steps,
                       absl::StrCat("advised ", look.reason));
      }
      if (const absl::Status status = host.change_settings(best.conf); !status.ok()) {
        return {.kind = Kind::kFailed, .conf = best.conf, .text = std::string(status.message())};
      }
      observed = {look.conf, best.conf, look.steps};
      return Decided(Kind::kSwitched, best.conf, look.now, best.figures, look.steps,
                     absl::StrCat("switched to ", look.reason));
    }
    if (look.finding == LookFinding::kStart) {
      return Decided(Kind::kAdvised, look.start->conf, look.start_now, look.start->figures, look.steps,
                     absl::StrCat("advised ", look.reason));
    }
    return {.peak_bytes = look.now.peak_reserved_bytes, .steps = look.steps, .text = look.reason};
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!wake.wait_for(lock, options.pause, [this] { return is_stopped; })) {
      lock.unlock();
      Look();
      lock.lock();
    }
  }

  const TunerHost host;
  const TunerOptions options;
  const pid_t process = getpid();

  std::mutex looking;  // one look at a time; taken before `mutex`
  std::optional<Switch> observed;
  std::vector<std::string> passed_over;

  mutable std::mutex mutex;  // of what follows
  std::condition_variable wake;
  bool is_stopped = false;
  std::deque<std::uint64_t> step_ends;
  TunerDecision last;
  std::thread thread;
};

Tuner::Tuner(TunerHost host, const TunerOptions& options) : impl_(std::make_unique<Impl>(std::move(host), options)) {
  if (options.pause.count() > 0) impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

Tuner::~Tuner() {
  if (!impl_->thread.joinable()) return;
  if (getpid() != impl_->process) {
    // The thread was the parent's, and may have held a lock: what it had stays as it is.
    static_cast<void>(impl_.release());
    return;
  }
  {
    const std::lock_guard<std::mutex> guard(impl_->mutex);
    impl_->is_stopped = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

void Tuner::StepEnded() {
  const std::uint64_t events = impl_->host.event_count();
  const std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->step_ends.push_back(events);
  if (impl_->step_ends.size() > kMostStepEnds) impl_->step_ends.pop_front();
}

TunerDecision Tuner::Look() { return impl_->Look(); }

TunerDecision Tuner::last() const {
  const std::lock_guard<std::mutex> guard(impl_->mutex);
  return impl_->last;
}

}  // namespace ashlar
