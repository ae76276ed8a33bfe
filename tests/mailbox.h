// Things on their way from one thread to another: the last that was put in comes out first. Any thread may use it.
#ifndef ASHLAR_TESTS_MAILBOX_H_
#define ASHLAR_TESTS_MAILBOX_H_

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace ashlar::tests {

template <typename T>
class Mailbox {
 public:
  void Put(T thing) {
    const std::lock_guard<std::mutex> lock(mutex_);
    things_.push_back(std::move(thing));
  }
  // nullopt: it is empty.
  std::optional<T> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (things_.empty()) return std::nullopt;
    std::optional<T> thing(std::move(things_.back()));
    things_.pop_back();
    return thing;
  }

 private:
  std::mutex mutex_;
  std::vector<T> things_;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_MAILBOX_H_
