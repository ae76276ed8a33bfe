// What this library writes for itself never ends the program by its limit of file sizes (RLIMIT_FSIZE).
//
//   const QuietFileLimit quiet;
//   ftruncate(file, bytes);      // beyond the limit it fails with EFBIG, and no SIGXFSZ comes
//
// Thread rule: of the thread that makes it, which the signal is sent to.
#ifndef ASHLAR_HOLLOW_MODEL_FILE_LIMIT_H_
#define ASHLAR_HOLLOW_MODEL_FILE_LIMIT_H_

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace ashlar::hollow {

class QuietFileLimit {
 public:
  QuietFileLimit() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~QuietFileLimit() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;
    const int error = errno;
    const timespec at_once = {};
    while (sigtimedwait(&signal_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  QuietFileLimit(const QuietFileLimit&) = delete;
  QuietFileLimit& operator=(const QuietFileLimit&) = delete;

 private:
  sigset_t signal_;
  sigset_t before_;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_FILE_LIMIT_H_
