#include "ashlar/nvtx.h"

#define NVTX_NO_IMPL  // its types only: the injection is below, and nothing here calls NVTX
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "ashlar/scope.h"

namespace ashlar {
namespace {

std::atomic<bool> is_following{false};

// How many of the ranges pushed on this thread are scopes: those that were pushed since FollowNvtxRanges.
thread_local int depth = 0;
thread_local int unfollowed = 0;

std::string Narrow(const wchar_t* text) {
  std::string out;
  for (; text != nullptr && *text != 0; ++text) out += *text < 0x80 ? static_cast<char>(*text) : '?';
  return out;
}

int Push(const std::string& name) {
  if (is_following.load(std::memory_order_relaxed)) {
    BeginScope(name.empty() ? "NVTX range" : name);
    ++depth;
  } else {
    ++unfollowed;
  }
  return unfollowed + depth - 1;
}

int Pop() {
  if (depth > 0) {
    EndScope();
    --depth;
  } else if (unfollowed > 0) {
    --unfollowed;
  } else {
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  return unfollowed + depth;
}

// Registered strings are ours: RegisterA and RegisterW made them.
std::string NameOf(const nvtxEventAttributes_t* attributes) {
  if (attributes == nullptr) return "";
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return attributes->message.ascii == nullptr ? "" : attributes->message.ascii;
    case NVTX_MESSAGE_TYPE_UNICODE:
      return Narrow(attributes->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return attributes->message.registered == nullptr
                 ? ""
                 : *reinterpret_cast<const std::string*>(attributes->message.registered);
    default:
      return "";
  }
}

int PushA(const char* name) { return Push(name == nullptr ? "" : name); }
int PushW(const wchar_t* name) { return Push(Narrow(name)); }
int PushEx(const nvtxEventAttributes_t* attributes) { return Push(NameOf(attributes)); }
int DomainPushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) { return Push(NameOf(attributes)); }
int DomainPop(nvtxDomainHandle_t) { return Pop(); }

// NVTX has no call that gives a string back: they live as long as the program, which may use them to its very end.
nvtxStringHandle_t Register(std::string text) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const strings = new std::deque<std::string>;  // never moves them
  const std::lock_guard lock(*mutex);
  return reinterpret_cast<nvtxStringHandle_t>(&strings->emplace_back(std::move(text)));
}
nvtxStringHandle_t RegisterA(nvtxDomainHandle_t, const char* text) { return Register(text == nullptr ? "" : text); }
nvtxStringHandle_t RegisterW(nvtxDomainHandle_t, const wchar_t* text) { return Register(Narrow(text)); }

// One module's callbacks.
class Table {
 public:
  Table(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) {
    if (callbacks.GetModuleFunctionTable(module, &functions_, &size_) == 0) size_ = 0;
  }
  template <typename Function>
  void Set(unsigned id, Function* function) {
    if (id < size_ && functions_[id] != nullptr) *functions_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }

 private:
  NvtxFunctionTable functions_ = nullptr;
  unsigned size_ = 0;
};

// Called by NVTX at its first call; 0 would turn NVTX off.
int Attach(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  Table core(*callbacks, NVTX_CB_MODULE_CORE);
  core.Set(NVTX_CBID_CORE_RangePushA, &PushA);
  core.Set(NVTX_CBID_CORE_RangePushW, &PushW);
  core.Set(NVTX_CBID_CORE_RangePushEx, &PushEx);
  core.Set(NVTX_CBID_CORE_RangePop, &Pop);
  Table domains(*callbacks, NVTX_CB_MODULE_CORE2);
  domains.Set(NVTX_CBID_CORE2_DomainRangePushEx, &DomainPushEx);
  domains.Set(NVTX_CBID_CORE2_DomainRangePop, &DomainPop);
  domains.Set(NVTX_CBID_CORE2_DomainRegisterStringA, &RegisterA);
  domains.Set(NVTX_CBID_CORE2_DomainRegisterStringW, &RegisterW);
  return 1;
}

}  // namespace

void FollowNvtxRanges() { is_following.store(true, std::memory_order_relaxed); }

}  // namespace ashlar

// Strong, where every object that uses NVTX has a weak one that is null.
extern "C" ASHLAR_EXPORT NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = &ashlar::Attach;
