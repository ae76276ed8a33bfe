// Runs the ranks of a test, each in a process of its own.
//
//   EXPECT_EQ(RunRanks(4, [&](int rank) { ... EXPECT_... }), std::vector<int>(4, 0));
//
// A rank's exit code is 0, 1 where an expectation failed (it was printed), 128 + n where signal n ended it.
#ifndef ASHLAR_TESTS_HOLLOW_RANKS_H_
#define ASHLAR_TESTS_HOLLOW_RANKS_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ashlar::hollow::test {

inline std::vector<int> RunRanks(int ranks, const std::function<void(int)>& run) {
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      alarm(120);  // a test that hangs fails
      run(rank);
      std::exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    processes.push_back(process);
  }
  std::vector<int> codes;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return codes;
}

// A run folder in /dev/shm that is gone at the end.
class RunFolder {
 public:
  RunFolder() {
    char name[] = "/dev/shm/ashlar-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~RunFolder() { std::filesystem::remove_all(path_); }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::string& path() const { return path_; }
  int files() const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::string path_;
};

// Steps of a test that processes take together: shared memory that a fork keeps shared.
template <typename Value>
Value* Shared() {
  void* at = mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : new (at) Value{};
}

}  // namespace ashlar::hollow::test

#endif  // ASHLAR_TESTS_HOLLOW_RANKS_H_
