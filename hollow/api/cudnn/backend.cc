#include "hollow/api/cudnn/backend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hollow/api/cudnn/asked_library.h"
#include "hollow/api/cudnn/backend_text.h"
#include "hollow/api/cudnn/cudnn.h"
#include "hollow/api/objects.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

// Numbers: cudnn_graph.h of 9.24, which are those of cudnn_backend.h of 8.9 as far as that goes.
enum BackendKind {
  kEngineKind = 2,
  kConfigKind = 3,
  kHeuristicKind = 4,
  kPlanKind = 5,
  kGraphKind = 15,
  kPackKind = 16,
  kTensorKind = 17,
  kCacheKind = 34,
  kDeviceKind = 38,
};
enum BackendType {
  kBoolean = 2,
  kInt64 = 3,
  kKnobType = 9,
  kNumericalNote = 11,
  kDescriptor = 15,
  kBehaviorNote = 19,
  kInt32 = 23,
  kChar = 24,
  kFraction = 26,
};
enum BackendName {
  kAskedNumber = -1,  // no name of cuDNN's: which of the heuristic's a configuration is, where the library was asked
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kConfigIntermediate = 301,
  kConfigKnobs = 302,
  kConfigWorkspace = 303,
  kConfigSharedMemory = 304,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanComputedUids = 403,
  kPlanRunOnlyUids = 404,
  kPlanJson = 405,
  kGraphOperations = 801,
  kGraphEngines = 802,
  kTensorType = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorVectorCount = 904,
  kTensorVectorDim = 905,
  kTensorUid = 906,
  kTensorVirtual = 907,
  kTensorByValue = 908,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kEngineKnobs = 1302,
  kEngineNumericalNotes = 1303,
  kEngineLayouts = 1304,
  kEngineBehaviorNotes = 1305,
  kCacheHasConfig = 2401,
  kCacheJson = 2402,
  kDevicePropertiesJson = 2702,
};

using BackendAnswer = std::unique_ptr<BackendAttribute>;

BackendAnswer Nothing(int type) {
  auto answer = std::make_unique<BackendAttribute>();
  answer->type = type;
  return answer;
}

BackendAnswer Bytes(int type, std::int64_t count, const void* bytes, std::size_t size) {
  BackendAnswer answer = Nothing(type);
  answer->count = count;
  const auto* const from = static_cast<const std::byte*>(bytes);
  answer->bytes.assign(from, from + size);
  return answer;
}
BackendAnswer Int64(std::int64_t value) { return Bytes(kInt64, 1, &value, sizeof(value)); }
BackendAnswer Int32(std::int32_t value) { return Bytes(kInt32, 1, &value, sizeof(value)); }
BackendAnswer Boolean(bool value) { return Bytes(kBoolean, 1, &value, sizeof(value)); }
BackendAnswer Text(std::string_view text) {
  return Bytes(kChar, static_cast<std::int64_t>(text.size()), text.data(), text.size());
}
BackendAnswer One(std::shared_ptr<const BackendDescriptor> descriptor) {
  BackendAnswer answer = Nothing(kDescriptor);
  answer->count = 1;
  answer->descriptors.push_back(std::move(descriptor));
  return answer;
}

BackendAnswer Notes(int type, const std::vector<std::int32_t>& notes) {
  return Bytes(type, static_cast<std::int64_t>(notes.size()), notes.data(), notes.size() * sizeof(std::int32_t));
}

// A configuration of an engine, for the graph that the heuristic was asked about, if it was.
std::shared_ptr<BackendDescriptor> ConfigFor(const BackendDescriptor& heuristic,
                                             const std::shared_ptr<BackendDescriptor>& engine) {
  engine->kind = kEngineKind;
  engine->finalized = true;
  if (const auto graph = heuristic.attributes.find(kHeuristicGraph); graph != heuristic.attributes.end()) {
    engine->attributes[kEngineGraph] = graph->second;
  }
  if (const auto mode = heuristic.attributes.find(kHeuristicMode); mode != heuristic.attributes.end()) {
    engine->attributes[kHeuristicMode] = mode->second;
  }
  auto config = std::make_shared<BackendDescriptor>();
  config->kind = kConfigKind;
  config->finalized = true;
  config->attributes[kConfigEngine] = *One(engine);
  return config;
}

// The one configuration of the one engine.
BackendAnswer FoundConfig(const BackendDescriptor& heuristic) {
  auto engine = std::make_shared<BackendDescriptor>();
  engine->attributes[kEngineIndex] = *Int64(0);
  return One(ConfigFor(heuristic, engine));
}

// Those that the program's own library has for the heuristic; null: it does not say.
BackendAnswer AskedConfigs(const BackendDescriptor& heuristic) {
  const std::string question = QuestionOfHeuristic(heuristic);
  BackendAnswer out = Nothing(kDescriptor);
  for (const AskedConfig& of : question.empty() ? std::vector<AskedConfig>() : AskForConfigs(question)) {
    auto engine = std::make_shared<BackendDescriptor>();
    engine->attributes[kEngineIndex] = *Int64(of.engine);
    engine->attributes[kEngineNumericalNotes] = *Notes(kNumericalNote, of.numerical_notes);
    engine->attributes[kEngineBehaviorNotes] = *Notes(kBehaviorNote, of.behavior_notes);
    const std::shared_ptr<BackendDescriptor> config = ConfigFor(heuristic, engine);
    config->attributes[kConfigWorkspace] = *Int64(of.workspace_bytes);
    config->attributes[kAskedNumber] = *Int64(of.number);
    out->descriptors.push_back(config);
  }
  out->count = static_cast<std::int64_t>(out->descriptors.size());
  return out->count == 0 ? nullptr : std::move(out);
}

// False: it is no plan, as the program's own library says.
bool ConcludePlan(BackendDescriptor& plan) {
  const std::string question = QuestionOf(plan);
  AskedPlan asked;
  if (const BackendDescriptor* config = PartOf(&plan, kPlanConfig); config != nullptr) {
    if (const auto number = config->attributes.find(kAskedNumber); number != config->attributes.end()) {
      std::int64_t of_heuristic = 0;
      std::memcpy(&of_heuristic, number->second.bytes.data(), sizeof(of_heuristic));
      asked = AskForPlan(question, static_cast<int>(of_heuristic));
    }
  }
  if (asked.is_answered && !asked.is_plan) return false;
  if (asked.is_answered) plan.attributes[kPlanWorkspace] = *Int64(asked.workspace_bytes);
  NoteCudnnPlan(question, asked.is_answered ? std::optional<std::uint64_t>(asked.workspace_bytes) : std::nullopt);
  return true;
}

BackendAnswer OfEngine(int name) {
  switch (name) {
    case kEngineKnobs:
    case kEngineLayouts:
      return Nothing(kDescriptor);
    case kEngineNumericalNotes:
      return Nothing(kNumericalNote);
    case kEngineBehaviorNotes:
      return Nothing(kBehaviorNote);
    default:
      return nullptr;
  }
}
BackendAnswer OfConfig(int name) {
  switch (name) {
    case kConfigIntermediate:
    case kConfigKnobs:
      return Nothing(kDescriptor);
    case kConfigWorkspace:
      return Int64(static_cast<std::int64_t>(kWorkspaceBytes));
    case kConfigSharedMemory:
      return Int32(0);
    default:
      return nullptr;
  }
}
BackendAnswer OfPlan(int name) {
  switch (name) {
    case kPlanWorkspace:
      return Int64(static_cast<std::int64_t>(kWorkspaceBytes));
    case kPlanComputedUids:
    case kPlanRunOnlyUids:
      return Nothing(kInt64);
    case kPlanJson:
      return Text("{}");
    default:
      return nullptr;
  }
}
BackendAnswer OfTensor(int name) {
  switch (name) {
    case kTensorVectorCount:
      return Int64(1);
    case kTensorVectorDim:
      return Int64(-1);
    case kTensorVirtual:
    case kTensorByValue:
      return Boolean(false);
    default:
      return nullptr;
  }
}

BackendAnswer OfKernelCache(int name) {
  switch (name) {
    case kCacheHasConfig:
      return Boolean(false);
    case kCacheJson:
      return Text("{}");
    default:
      return nullptr;
  }
}

}  // namespace

const BackendDescriptor* PartOf(const BackendDescriptor* descriptor, int name) {
  if (descriptor == nullptr) return nullptr;
  const auto found = descriptor->attributes.find(name);
  if (found == descriptor->attributes.end() || found->second.descriptors.empty()) return nullptr;
  return found->second.descriptors.front().get();
}

std::uint64_t BackendTypeBytes(int type) {
  switch (type) {
    case kBoolean:
    case kChar:
      return 1;
    case 0:  // HANDLE
    case kInt64:
    case 5:  // DOUBLE
    case 6:  // VOID_PTR
    case kDescriptor:
      return 8;
    case kFraction:
      return 16;
    default:
      return type >= 0 && type <= 32 ? 4 : 0;  // FLOAT, INT32 and enumerations
  }
}

bool IsComplete(const BackendDescriptor& descriptor) {
  const auto has = [&descriptor](int name) { return descriptor.attributes.contains(name); };
  switch (descriptor.kind) {
    case kEngineKind:
      return has(kEngineGraph) && has(kEngineIndex);
    case kConfigKind:
      return has(kConfigEngine);
    case kHeuristicKind:
      return has(kHeuristicGraph);
    case kPlanKind:
      return has(kPlanConfig) || has(kPlanJson);
    case kGraphKind:
      return has(kGraphOperations);
    case kTensorKind:
      return has(kTensorType) && has(kTensorDims) && has(kTensorStrides) && has(kTensorUid);
    default:
      return true;
  }
}

std::unique_ptr<BackendAttribute> DerivedAttribute(const BackendDescriptor& descriptor, int name) {
  switch (descriptor.kind) {
    case kEngineKind:
      return OfEngine(name);
    case kConfigKind:
      return OfConfig(name);
    case kHeuristicKind:
      return name == kHeuristicResults ? FoundConfig(descriptor) : nullptr;
    case kPlanKind:
      return name == kPlanConfig ? FoundConfig(descriptor) : OfPlan(name);  // of a plan made of its own text
    case kGraphKind:
      return name == kGraphEngines ? Int64(1) : nullptr;
    case kTensorKind:
      return OfTensor(name);
    case kDeviceKind:
      return name == kDevicePropertiesJson ? Text("{}") : nullptr;
    case kCacheKind:
      return OfKernelCache(name);
    default:
      return nullptr;
  }
}

}  // namespace ashlar::hollow

// cuDNN: the functions of the graph interface, over cudnn_backend.h.
//
// Signatures: cudnn_graph.h of 9.24, cudnn_backend.h of 8.9.

namespace ashlar::hollow {
namespace {

// What a descriptor learns of the library as it is finalized. False: it cannot be.
bool Conclude(BackendDescriptor& descriptor) {
  if (descriptor.kind == kPlanKind) return ConcludePlan(descriptor);
  if (descriptor.kind != kHeuristicKind || !IsCudnnAsked()) return true;
  if (const BackendAnswer configs = AskedConfigs(descriptor); configs != nullptr) {
    descriptor.attributes[kHeuristicResults] = *configs;
  }
  return true;
}

constinit Objects<BackendDescriptor> backend_descriptors(0xDB);

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

// The count is of those that there are where none is wanted, else of those that are written, as 9.24 has it.
int AnswerWith(const BackendAttribute& attribute, int type, std::int64_t wanted, std::int64_t* count, void* values) {
  if (attribute.type != type) return CudnnBadParam();
  const bool asks_how_many = wanted == 0 || values == nullptr;
  const std::int64_t written = asks_how_many ? attribute.count : std::min(wanted, attribute.count);
  if (count != nullptr) *count = written;
  if (asks_how_many) return kCudnnSuccess;
  if (type == kDescriptor) return FillDescriptors(attribute, wanted, static_cast<void* const*>(values));
  const std::uint64_t bytes = static_cast<std::uint64_t>(written) * BackendTypeBytes(type);
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
  if (!Conclude(*mine)) return CudnnNotSupported();
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
  if (type == kDescriptor && !TakeDescriptors(static_cast<const void* const*>(values), count, &attribute)) {
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
  if (my_plan == nullptr || my_pack == nullptr || my_plan->kind != kPlanKind || my_pack->kind != kPackKind ||
      !my_plan->finalized || !my_pack->finalized) {
    return CudnnBadParam();
  }
  return LaunchCudnn(handle);
}
