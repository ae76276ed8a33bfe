// Names an address of code: the file it lies in, the place in it, and the function. The function is an exported one,
// else one of the file's own table of symbols, where it was not stripped.
//
// Thread rule: any thread, one at a time. Slow (up to milliseconds): ask once for each address.
#ifndef ASHLAR_HOLLOW_RECORD_SYMBOLS_H_
#define ASHLAR_HOLLOW_RECORD_SYMBOLS_H_

#include <cstdint>
#include <string>

namespace ashlar::record {

struct CodeName {
  std::string file = {};      // a path; empty: code that no file has, as compiled at run time
  std::uint64_t offset = 0;   // in the file's own addresses, as addr2line takes them
  std::string function = {};  // as the linker knows it; empty: not known
};

// `return_address`: the call is just before it.
CodeName NameOf(const void* return_address);

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_SYMBOLS_H_
