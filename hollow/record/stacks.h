// Call stacks and their numbers. A stack is captured where a call stands; each distinct stack and each distinct address
// in one is written to the log once, with its name, before the first row that refers to it: a library may be gone
// later.
//
//   const Stack stack = CaptureStack(__builtin_return_address(0));
//   if (!stacks.Find(stack)) stacks.Add(stack, unknown, names, log);      // unknown = stacks.UnknownFrames(stack)
//
// CaptureStack: any thread. Stacks: one thread at a time.
#ifndef ASHLAR_HOLLOW_RECORD_STACKS_H_
#define ASHLAR_HOLLOW_RECORD_STACKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hollow/record/log.h"

namespace ashlar::record {

// Names an address of code: the file it lies in, the place in it, and the function. The function is an exported one,
// else one of the file's own table of symbols, where it was not stripped.
//
// Thread rule: any thread, one at a time. Slow (up to milliseconds): ask once for each address.
struct CodeName {
  std::string file = {};      // a path; empty: code that no file has, as compiled at run time
  std::uint64_t offset = 0;   // in the file's own addresses, as addr2line takes them
  std::string function = {};  // as the linker knows it; empty: not known
};

// `return_address`: the call is just before it.
CodeName NameOf(const void* return_address);

struct Stack {
  static constexpr std::size_t kMostFrames = 64;  // the innermost ones

  std::array<const void*, kMostFrames> frames;  // return addresses, innermost first
  std::size_t count = 0;
};

// From the frame that `caller` returns to on: what is of ours above it is left out.
Stack CaptureStack(const void* caller);

class Stacks {
 public:
  std::optional<std::uint64_t> Find(const Stack& stack) const;
  // Addresses of it that have no name yet.
  std::vector<const void*> UnknownFrames(const Stack& stack) const;
  // The stack's number, which it may have got meanwhile. `names` are of `unknown`.
  std::uint64_t Add(const Stack& stack, const std::vector<const void*>& unknown, const std::vector<CodeName>& names,
                    Log& log);
  // Of the code that made the call, the stack's innermost frame; it lasts as long as this.
  std::string_view FileOf(std::uint64_t number) const;

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> stacks_;  // by what their addresses come to, 64 bits
  struct Frame {
    std::uint64_t number = 0;
    std::string_view file = {};  // into files_
  };
  std::unordered_map<const void*, Frame> frames_;
  std::set<std::string> files_;
  std::vector<std::string_view> callers_;  // index = the stack's number; into files_
};

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_STACKS_H_
