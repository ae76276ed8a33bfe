// Descriptors of cuDNN's graph interface: a kind and attributes by number.
//
// A descriptor answers the attributes that it was set to; what only the library knows (results of heuristics, an
// engine's knobs, a plan's workspace) is answered by kind: one engine, without knobs or notes, whose workspace is
// kWorkspaceBytes (sizes.h). Where the run asks the program's own library (asked_library.h), a heuristic has the
// configurations that it names, with their notes, and a plan the workspace. A descriptor that is an attribute of
// another is kept as it was when it was set. Thread rule: any thread; one descriptor is used by one thread at a time,
// as cuDNN asks.
#ifndef ASHLAR_HOLLOW_API_CUDNN_BACKEND_H_
#define ASHLAR_HOLLOW_API_CUDNN_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace ashlar::hollow {

struct BackendDescriptor;

inline constexpr int kHeuristicMode = 200;  // CUDNN_ATTR_ENGINEHEUR_MODE; an engine that was found has it as well

struct BackendAttribute {
  int type = 0;  // cudnnBackendAttributeType_t
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<const BackendDescriptor>> descriptors;  // where the type is a descriptor's
};

struct BackendDescriptor {
  int kind = -1;  // cudnnBackendDescriptorType_t
  bool finalized = false;
  std::map<int, BackendAttribute> attributes;  // by cudnnBackendAttributeName_t
};

// Bytes of one element of an attribute type; 0 where the number is not known.
std::uint64_t BackendTypeBytes(int type);

// Whether what the kind cannot do without has been set.
bool IsComplete(const BackendDescriptor& descriptor);

// The descriptor that an attribute is; null where there is none.
const BackendDescriptor* PartOf(const BackendDescriptor* descriptor, int name);

// What the library alone knows of a finalized descriptor; null where it is not modelled.
std::unique_ptr<BackendAttribute> DerivedAttribute(const BackendDescriptor& descriptor, int name);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDNN_BACKEND_H_
