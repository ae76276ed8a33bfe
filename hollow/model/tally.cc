#include "hollow/model/tally.h"

namespace ashlar::hollow {

void Tally::AddRefused(const char* name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++refused_[name];
}

void Tally::AddMadeUp(const std::string& line, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  MadeUp& made_up = made_up_[line];
  ++made_up.count;
  made_up.bytes += bytes;
}

std::map<std::string, std::uint64_t> Tally::refused() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refused_;
}

std::map<std::string, MadeUp> Tally::made_up() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return made_up_;
}

void Tally::Clear() {
  launches_.store(0, std::memory_order_relaxed);
  refused_.clear();
  made_up_.clear();
}

}  // namespace ashlar::hollow
