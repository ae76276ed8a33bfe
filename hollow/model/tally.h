// Counts what a process did for its report: work that nothing ran, calls that are not modelled, made-up values.
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_MODEL_TALLY_H_
#define ASHLAR_HOLLOW_MODEL_TALLY_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace ashlar::hollow {

// Reads, on the host, of bytes that only a kernel would have written.
struct MadeUp {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

class Tally {
 public:
  void AddLaunch() { launches_.fetch_add(1, std::memory_order_relaxed); }
  void AddRefused(const char* name);
  void AddMadeUp(const std::string& line, std::uint64_t bytes);

  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  std::map<std::string, std::uint64_t> refused() const;  // by name
  std::map<std::string, MadeUp> made_up() const;         // by line of the program
  // A forked child starts at nothing. The caller makes sure that no other thread is in here.
  void Clear();

 private:
  std::atomic<std::uint64_t> launches_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> refused_;
  std::map<std::string, MadeUp> made_up_;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_TALLY_H_
