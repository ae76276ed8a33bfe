// CUDA's driver: arrays, and the objects by which kernels read them. Source of the signatures: cuda.h of
// CUDA 11.8, 12.4 and 13.0.
#include "hollow/api/cuda/arrays.h"

#include <atomic>

#include "hollow/api/cuda/memory.h"
#include "hollow/api/driver/call.h"
#include "hollow/model/calling_library.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

// Of a texture or a surface, which nothing here reads: a number that is never given twice.
int NewDriverObject(std::uint64_t* object, const void* resource) {
  static std::atomic<std::uint64_t> next = std::uint64_t{1} << 32;  // apart from the runtime's
  ASHLAR_NEEDS_INIT();
  if (object == nullptr || resource == nullptr) return Number(Error::kInvalidValue);
  *object = next.fetch_add(1);
  return 0;
}

}  // namespace

ASHLAR_SURFACE int cuArray3DCreate_v2(void** array, const abi::ArrayDescriptor* form) {
  const CallFrom call(ASHLAR_CALLER);
  ASHLAR_NEEDS_INIT();
  if (form == nullptr) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return MakeArray(process, *form, array); });
}
ASHLAR_SURFACE int cuArrayCreate_v2(void** array, const abi::FlatArrayDescriptor* form) {
  const CallFrom call(ASHLAR_CALLER);
  ASHLAR_NEEDS_INIT();
  if (form == nullptr) return Number(Error::kInvalidValue);
  const abi::ArrayDescriptor whole = {form->width, form->height, 0, form->format, form->channels, 0};
  return Driven([&](Process& process) { return MakeArray(process, whole, array); });
}
ASHLAR_SURFACE int cuArrayDestroy(void* array) {
  return Driven([&](Process& process) { return array == nullptr ? Error::kInvalidHandle : FreeArray(process, array); });
}
ASHLAR_SURFACE int cuArray3DGetDescriptor_v2(abi::ArrayDescriptor* form, void* array) {
  ASHLAR_NEEDS_INIT();
  const DeviceArray* found = ArrayOf(array);
  if (found == nullptr) return Number(Error::kInvalidHandle);
  if (form == nullptr) return Number(Error::kInvalidValue);
  *form = found->form;
  return 0;
}
ASHLAR_SURFACE int cuArrayGetDescriptor_v2(abi::FlatArrayDescriptor* form, void* array) {
  ASHLAR_NEEDS_INIT();
  const DeviceArray* found = ArrayOf(array);
  if (found == nullptr) return Number(Error::kInvalidHandle);
  if (form == nullptr) return Number(Error::kInvalidValue);
  *form = {found->form.width, found->form.height, found->form.format, found->form.channels};
  return 0;
}

ASHLAR_SURFACE int cuTexObjectCreate(std::uint64_t* object, const void* resource, const void*, const void*) {
  return NewDriverObject(object, resource);
}
ASHLAR_SURFACE int cuSurfObjectCreate(std::uint64_t* object, const void* resource) {
  return NewDriverObject(object, resource);
}
ASHLAR_IGNORED_AFTER_INIT(cuTexObjectDestroy, "its number is not given again")
ASHLAR_IGNORED_AFTER_INIT(cuSurfObjectDestroy, "its number is not given again")
