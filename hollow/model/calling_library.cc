#include "hollow/model/calling_library.h"

#include <dlfcn.h>
#include <unwind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace ashlar::hollow {
namespace {

// Nothing here is ever destroyed: a program may allocate until its very end.
struct KnownCaller {
  const void* address = nullptr;
  std::string_view library = {};
};
constexpr std::size_t kKnownCallers = 16;

thread_local std::string_view t_library;
thread_local std::array<KnownCaller, kKnownCallers> t_known;

std::string_view Lasting(std::string_view name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard<std::mutex> lock(mutex);
  return *names.emplace(name).first;
}

std::string_view LibraryOf(const void* address) {
  KnownCaller& known = t_known[(reinterpret_cast<std::uintptr_t>(address) >> 2) % kKnownCallers];
  if (known.address == address) return known.library;
  Dl_info info = {};
  std::string_view path;
  if (dladdr(address, &info) != 0 && info.dli_fname != nullptr) path = info.dli_fname;
  known = {address, Lasting(path.substr(path.rfind('/') + 1))};
  return known.library;
}

// What we preload before the hollow device, and what passes its calls on (hollow/interpose).
bool StandsIn(std::string_view library) { return library == "libashlar_record.so" || library == "libashlar_serve.so"; }

struct Search {
  std::string_view stand_in;
  bool is_there = false;        // the frames of the stand-in have begun
  std::string_view found = {};  // the library behind them
};

_Unwind_Reason_Code LookAtFrame(_Unwind_Context* context, void* of) {
  Search& search = *static_cast<Search*>(of);
  const _Unwind_Ptr address = _Unwind_GetIP(context);
  const std::string_view library = LibraryOf(reinterpret_cast<const void*>(address));
  if (library == search.stand_in) {
    search.is_there = true;
  } else if (search.is_there && !StandsIn(library)) {
    search.found = library;
    return _URC_END_OF_STACK;
  }
  return _URC_NO_REASON;
}

// Who called what stands in for CUDA: the few frames up to it are walked.
std::string_view CallerOf(std::string_view stand_in) {
  Search search{stand_in};
  _Unwind_Backtrace(LookAtFrame, &search);
  return search.found;
}

}  // namespace

CallFrom::CallFrom(const void* return_address) : before_(t_library) {
  if (!before_.empty()) return;
  t_library = LibraryOf(return_address);
  if (StandsIn(t_library)) t_library = CallerOf(t_library);
}

CallFrom::~CallFrom() { t_library = before_; }

std::string_view CallingLibrary() { return t_library; }

}  // namespace ashlar::hollow
