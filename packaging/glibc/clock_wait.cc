// Of glibc 2.30: a wait until a time of a steady clock. Here the same span from now on the clock of the condition
// variable, as libstdc++ did before; a clock that is set meanwhile makes the wait longer or shorter.
#include <pthread.h>

#include <ctime>

namespace {

constexpr long kNanosecondsOfSecond = 1000000000;

timespec Plus(timespec a, timespec b, int sign) {
  timespec out{a.tv_sec + sign * b.tv_sec, a.tv_nsec + sign * b.tv_nsec};
  if (out.tv_nsec < 0) out = {out.tv_sec - 1, out.tv_nsec + kNanosecondsOfSecond};
  if (out.tv_nsec >= kNanosecondsOfSecond) out = {out.tv_sec + 1, out.tv_nsec - kNanosecondsOfSecond};
  return out;
}

}  // namespace

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* deadline) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, deadline);
  timespec now;
  timespec today;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &today);
  const timespec until = Plus(today, Plus(*deadline, now, -1), 1);
  return pthread_cond_timedwait(condition, mutex, &until);
}
