// Which library made the call on device memory that is under way on this thread: by the call's return address, which
// the system's loader knows the object of. Each address is looked up once a thread. A library of ours that passes the
// program's calls on is no caller: what called it is.
//
//   const CallFrom call(ASHLAR_CALLER);   // in a function that a program calls, before any lock is taken
//   CallingLibrary();                     // "libnccl.so.2"
//
// A function of ours that calls another one is no caller: the first on the thread stays. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_MODEL_CALLING_LIBRARY_H_
#define ASHLAR_HOLLOW_MODEL_CALLING_LIBRARY_H_

#include <string_view>

namespace ashlar::hollow {

#define ASHLAR_CALLER __builtin_return_address(0)

class CallFrom {
 public:
  // The loader's lock is taken for an address that is new: the caller holds no other.
  explicit CallFrom(const void* return_address);
  ~CallFrom();
  CallFrom(const CallFrom&) = delete;
  CallFrom& operator=(const CallFrom&) = delete;

 private:
  const std::string_view before_;
};

// The file's name, which lasts; empty where no call is under way, or its object is not known.
std::string_view CallingLibrary();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_CALLING_LIBRARY_H_
