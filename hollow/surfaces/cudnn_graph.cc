// cuDNN: the functions of the graph interface, over cudnn_backend.h.
//
// Signatures: cudnn_graph.h of 9.24, cudnn_backend.h of 8.9.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "hollow/surfaces/cudnn.h"
#include "hollow/surfaces/cudnn_backend.h"
#include "hollow/surfaces/launches.h"
#include "hollow/surfaces/objects.h"
#include "hollow/surfaces/surface.h"

namespace ashlar::hollow {
namespace {

constinit Objects<BackendDescriptor> backend_descriptors(0xDB);

constexpr int kDescriptorType = 15;    // CUDNN_TYPE_BACKEND_DESCRIPTOR
constexpr int kExecutionPlanKind = 5;  // CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
constexpr int kDataPackKind = 16;      // CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR

bool TakeDescriptors(const void* const* from, std::int64_t count, BackendAttribute* attribute) {
  for (std::int64_t i = 0; i < count; ++i) {
    const BackendDescriptor* one = backend_descriptors.Find(from[i]);
    if (one == nullptr) return false;
    attribute->descriptors.push_back(std::make_shared<BackendDescriptor>(*one));
  }
  return true;
}

// Fills descriptors that the caller made, as many as there are and were asked for.
int FillDescriptors(const BackendAttribute& attribute, std::int64_t wanted, void* const* to) {
  const auto count = std::min<std::int64_t>(wanted, static_cast<std::int64_t>(attribute.descriptors.size()));
  for (std::int64_t i = 0; i < count; ++i) {
    BackendDescriptor* mine = backend_descriptors.Find(to[i]);
    if (mine == nullptr || mine->kind != attribute.descriptors[i]->kind) return CudnnBadParam();
    *mine = *attribute.descriptors[i];
  }
  return kCudnnSuccess;
}

int AnswerWith(const BackendAttribute& attribute, int type, std::int64_t wanted, std::int64_t* count, void* values) {
  if (attribute.type != type) return CudnnBadParam();
  if (count != nullptr) *count = attribute.count;
  if (wanted == 0 || values == nullptr) return kCudnnSuccess;  // it asks how many there are
  if (type == kDescriptorType) return FillDescriptors(attribute, wanted, static_cast<void* const*>(values));
  const std::uint64_t bytes = static_cast<std::uint64_t>(std::min(wanted, attribute.count)) * BackendTypeBytes(type);
  if (bytes != 0) std::memcpy(values, attribute.bytes.data(), bytes);
  return kCudnnSuccess;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  if (kind < 0 || descriptor == nullptr) return CudnnBadParam();
  *descriptor = backend_descriptors.Make(BackendDescriptor{kind, false, {}});
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnBackendDestroyDescriptor(void* descriptor) {
  return descriptor == nullptr || backend_descriptors.Destroy(descriptor) ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE int cudnnBackendInitialize(void* descriptor) {
  BackendDescriptor* mine = backend_descriptors.Find(descriptor);
  if (mine == nullptr) return CudnnBadParam();
  *mine = BackendDescriptor{mine->kind, false, {}};
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnBackendFinalize(void* descriptor) {
  BackendDescriptor* mine = backend_descriptors.Find(descriptor);
  if (mine == nullptr || !IsComplete(*mine)) return CudnnBadParam();
  mine->finalized = true;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnBackendSetAttribute(void* descriptor, int name, int type, std::int64_t count,
                                            const void* values) {
  BackendDescriptor* mine = backend_descriptors.Find(descriptor);
  if (mine == nullptr || count < 0 || (count > 0 && values == nullptr)) return CudnnBadParam();
  if (mine->finalized) return CudnnNotInitialized();  // a finalized descriptor is not changed
  const std::uint64_t size = BackendTypeBytes(type);
  if (size == 0) return CudnnNotSupported();
  BackendAttribute attribute{type, count, {}, {}};
  if (type == kDescriptorType && !TakeDescriptors(static_cast<const void* const*>(values), count, &attribute)) {
    return CudnnBadParam();
  }
  const auto* bytes = static_cast<const std::byte*>(values);
  attribute.bytes.assign(bytes, bytes + static_cast<std::uint64_t>(count) * size);
  mine->attributes[name] = std::move(attribute);
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnBackendGetAttribute(void* descriptor, int name, int type, std::int64_t wanted,
                                            std::int64_t* count, void* values) {
  const BackendDescriptor* mine = backend_descriptors.Find(descriptor);
  if (mine == nullptr || wanted < 0) return CudnnBadParam();
  if (!mine->finalized) return CudnnNotInitialized();
  const BackendDescriptor held = *mine;  // what is filled may be the descriptor itself
  if (const auto set = held.attributes.find(name); set != held.attributes.end()) {
    return AnswerWith(set->second, type, wanted, count, values);
  }
  const std::unique_ptr<BackendAttribute> known = DerivedAttribute(held, name);
  if (known != nullptr) return AnswerWith(*known, type, wanted, count, values);
  CountRefused("cudnnBackendGetAttribute");
  return CudnnNotSupported();
}
ASHLAR_SURFACE int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  const BackendDescriptor* my_plan = backend_descriptors.Find(plan);
  const BackendDescriptor* my_pack = backend_descriptors.Find(pack);
  if (my_plan == nullptr || my_pack == nullptr || my_plan->kind != kExecutionPlanKind ||
      my_pack->kind != kDataPackKind || !my_plan->finalized || !my_pack->finalized) {
    return CudnnBadParam();
  }
  return LaunchCudnn(handle);
}
