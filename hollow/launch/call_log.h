// The calls on device memory that a process makes, in order: a line each, for comparing two programs.
//
//   allocate 0 20971520 0x200000 0      a call, its device, bytes, address, and the number of CUDA's error, 0 for none
//   free 0 20971520 0x200000 0
//
// A name stands for what the runtime and the driver both have: cudaMalloc and cuMemAlloc are "allocate". The others are
// free, allocate_async, free_async, and of virtual memory reserve, create, map, set_access, unmap, release, unreserve.
// Addresses count from the device's first one; of a handle (create, release) it is the handle's number. Host memory is
// not told, nor calls with 0 bytes or a null pointer.
//
// The file is that of ASHLAR_HOLLOW_CALLS, in which %p is the process's number; without the variable nothing is
// written. Where a line cannot be written (a full disk) the program goes on: one line on stderr says so, and the
// process's report has how many were lost. A line is one write, so that processes may share a file, and one that is
// killed has written what it did. Thread rule: the caller holds the process's lock.
#ifndef ASHLAR_HOLLOW_LAUNCH_CALL_LOG_H_
#define ASHLAR_HOLLOW_LAUNCH_CALL_LOG_H_

#include <cstdint>
#include <string>

#include "hollow/books/error.h"

namespace ashlar::hollow {

class CallLog {
 public:
  CallLog();  // ends the process with one line where the file cannot be written
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  bool is_open() const { return file_ >= 0; }
  void Add(const char* call, int device, std::uint64_t bytes, std::uint64_t place, Error error) const;
  // Calls that could not be written.
  std::uint64_t lost() const { return lost_; }

 private:
  void SayUnwritten(const char* what_then) const;  // of errno

  int file_ = -1;
  std::string path_;
  mutable std::uint64_t lost_ = 0;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_LAUNCH_CALL_LOG_H_
