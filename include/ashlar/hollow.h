// Functions of the hollow device for a program that runs over it: a test, or a helper in another language, may call
// them.
//
// Look these up by name (dlsym(RTLD_DEFAULT, ...), ctypes): they are there only when `ashlar dry-run` started the
// program. Each may be called from any thread. Sizes are in bytes; devices count from 0, as CUDA counts them.
//
//   bool (*set_capacity)(int, uint64_t) = (bool (*)(int, uint64_t))dlsym(RTLD_DEFAULT, "ashlar_hollow_set_capacity");
//   if (set_capacity) set_capacity(0, 1ull << 30);   // from now on this device has 1 GiB
#ifndef ASHLAR_HOLLOW_H_
#define ASHLAR_HOLLOW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ashlar/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Changes what device `ordinal` has in all. What is allocated stays; false where there is no such device.
ASHLAR_EXPORT bool ashlar_hollow_set_capacity(int ordinal, uint64_t bytes);
// The n-th call from now (1 = the next) that asks a device for memory is out of memory; 0 takes that back.
ASHLAR_EXPORT void ashlar_hollow_fail_call(uint64_t n);
// The same for an allocator that asks again, as PyTorch's does: the calls right after the n-th that ask for as many
// bytes fail too, at most two of them.
ASHLAR_EXPORT void ashlar_hollow_fail_request(uint64_t n);
// Bytes of all programs on device `ordinal`, contexts included; 0 where there is no such device.
ASHLAR_EXPORT uint64_t ashlar_hollow_used(int ordinal);

// In a fork that has one thread and is a run of its own, by its environment (ASHLAR_HOLLOW_RUN): its devices are read
// anew, as at the start of a process. False where its parent has used a device.
ASHLAR_EXPORT bool ashlar_hollow_begin_run(void);

// Values. Copies and fills of at most this many bytes are real; larger ones are dropped.
ASHLAR_EXPORT uint64_t ashlar_hollow_real_bytes(void);
// The bytes from `address` hold what the program computed (know) or what only a kernel would have written (forget).
ASHLAR_EXPORT void ashlar_hollow_know(uint64_t address, uint64_t bytes);
ASHLAR_EXPORT void ashlar_hollow_forget(uint64_t address, uint64_t bytes);
// Whether all of the bytes are known.
ASHLAR_EXPORT bool ashlar_hollow_is_known(uint64_t address, uint64_t bytes);
// Until ashlar_hollow_read_as_is, what the host reads of a device on this thread is `number`, in up to 8 bytes; in a
// single byte, true. Such reads are not counted as made up.
ASHLAR_EXPORT void ashlar_hollow_read_as(uint64_t number);
ASHLAR_EXPORT void ashlar_hollow_read_as_is(void);
// Whether the program gave cuBLAS these bytes to work in.
ASHLAR_EXPORT bool ashlar_hollow_is_workspace(uint64_t address, uint64_t bytes);
// Writes what each library of this process holds of device `ordinal`, by the file of the code that asked for it, a line
// "bytes allocations file" for each, into at most `size` bytes, the final 0 among them. Gives how many bytes that is.
// A line that does not fit whole is left out.
ASHLAR_EXPORT size_t ashlar_hollow_libraries(int ordinal, char* text, size_t size);
// Writes the line of the program that is under way, such as "train.py:12 step", in at most `size` bytes, the final 0
// among them; false where it knows none. An empty text: nobody looks at what is read, and it is not counted. Called
// without locks, on the thread that read a made-up value; NULL: nobody.
typedef bool (*ashlar_hollow_line)(char* text, size_t size);
ASHLAR_EXPORT void ashlar_hollow_set_line(ashlar_hollow_line line);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ASHLAR_HOLLOW_H_
