// libashlar.so as the serving library calls it: loaded at the first request of a process, so that a program without
// CUDA pays nothing, and the same one that every other integration of the process has.
//
//   const Ashlar* ashlar = TheAshlar();
//   if (ashlar != nullptr) ashlar->process_allocator(0, &allocator);
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SERVE_LIBRARY_H_
#define ASHLAR_HOLLOW_SERVE_LIBRARY_H_

#include "ashlar.h"

namespace ashlar::serve {

// The functions of ashlar.h, which has their contracts.
struct Ashlar {
  decltype(&ashlar_last_error) last_error;
  decltype(&ashlar_process_allocator) process_allocator;
  decltype(&ashlar_conf) conf;
  decltype(&ashlar_allocate) allocate;
  decltype(&ashlar_free) free;
  decltype(&ashlar_record_stream) record_stream;
  decltype(&ashlar_find_block) find_block;
  decltype(&ashlar_holds) holds;
  decltype(&ashlar_get_statistics) get_statistics;
};

// Null where it cannot be loaded, which is said once.
const Ashlar* TheAshlar();

// Whether code at this address is of that library, once it was loaded here: its own calls are for the driver, however
// it came by the function.
bool IsOfAshlar(const void* address);

// One line on standard error.
__attribute__((format(printf, 1, 2))) void Say(const char* format, ...);

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_LIBRARY_H_
