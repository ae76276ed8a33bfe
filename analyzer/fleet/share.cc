#include "analyzer/fleet/share.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::fleet {
namespace {

constexpr int kWaitMs = 100;
constexpr std::size_t kMostAttempts = 2;

class Sharing {
 public:
  Sharing(std::size_t count, Places& places, const ShareEvents& events)
      : places_(places),
        events_(events),
        left_(count),
        attempts_(count),
        at_(places.count()),
        is_gone_(places.count()) {
    for (std::size_t task = 0; task < count; ++task) queue_.push_back(task);
  }

  absl::Status Run() {
    while (left_ > 0) {
      HandOut();
      if (absl::Status status = CheckPlaces(); !status.ok()) return status;
      const absl::StatusOr<std::optional<PlaceMessage>> got = places_.Next(kWaitMs);
      if (!got.ok()) return got.status();
      if (got->has_value()) Take((*got)->place, (*got)->message);
    }
    return absl::OkStatus();
  }

 private:
  void HandOut() {
    for (std::size_t place = 0; place < at_.size() && !queue_.empty(); ++place) {
      if (at_[place].has_value() || is_gone_[place]) continue;
      const std::size_t task = queue_.front();
      // A place that cannot be reached tells so when it is asked for messages.
      if (!places_.Send(place, {MessageKind::kTask, events_.text(task, place), static_cast<std::uint32_t>(task)}).ok())
        continue;
      queue_.pop_front();
      at_[place] = task;
    }
  }

  absl::Status CheckPlaces() const {
    for (std::size_t place = 0; place < at_.size(); ++place) {
      if (!is_gone_[place]) return absl::OkStatus();
    }
    return absl::UnavailableError(
        absl::StrCat("all ", at_.size(), " processes that read the files were lost, ", left_, " files before the end"));
  }

  void Take(std::size_t place, const Message& message) {
    if (message.kind == MessageKind::kGone) is_gone_[place] = true;
    // A worker that was lost before it took its task leaves that to the next one: it was given out anew since.
    if (message.kind == MessageKind::kResult && at_[place] != message.task) return;
    const std::optional<std::size_t> task = std::exchange(at_[place], std::nullopt);
    if (!task.has_value()) return;
    if (message.kind == MessageKind::kResult) {
      --left_;
      events_.done(*task, message.text);
      return;
    }
    const bool is_given_up = ++attempts_[*task] == kMostAttempts;
    if (is_given_up) {
      --left_;
    } else {
      queue_.push_back(*task);
    }
    events_.lost(*task, place, message.text.empty() ? "it is gone" : message.text, is_given_up);
  }

  Places& places_;
  const ShareEvents& events_;
  std::size_t left_;
  std::deque<std::size_t> queue_;
  std::vector<std::size_t> attempts_;
  std::vector<std::optional<std::size_t>> at_;  // what each place does
  std::vector<bool> is_gone_;
};

}  // namespace

absl::Status ShareOut(std::size_t count, Places& places, const ShareEvents& events) {
  return Sharing(count, places, events).Run();
}

}  // namespace ashlar::fleet
