#include "hollow/api/cudnn/backend_text.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "hollow/api/cuda/device_properties.h"

namespace ashlar::hollow {
namespace {

constexpr int kHandleType = 0, kDescriptorType = 15;
constexpr int kPlanConfig = 401, kConfigEngine = 300, kEngineGraph = 1300, kHeuristicGraph = 201;

std::string Hexadecimal(const std::vector<std::byte>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte of : bytes) {
    out += kDigits[std::to_integer<unsigned>(of) >> 4];
    out += kDigits[std::to_integer<unsigned>(of) & 15];
  }
  return out;
}

std::string TextOf(const BackendDescriptor& descriptor);

std::string TextOf(const BackendAttribute& attribute) {
  if (attribute.type != kDescriptorType) return '"' + Hexadecimal(attribute.bytes) + '"';
  std::string out = "[";
  for (const auto& one : attribute.descriptors) out += (out.size() > 1 ? "," : "") + TextOf(*one);
  return out + "]";
}

std::string TextOf(const BackendDescriptor& descriptor) {
  std::string out = "{\"kind\":" + std::to_string(descriptor.kind) + ",\"set\":[";
  const char* comma = "";
  for (const auto& [name, attribute] : descriptor.attributes) {
    if (attribute.type == kHandleType) continue;
    out += comma + ("[" + std::to_string(name)) + "," + std::to_string(attribute.type) + "," +
           std::to_string(attribute.count) + "," + TextOf(attribute) + "]";
    comma = ",";
  }
  return out + "]}";
}

// `asked`: the heuristic, or an engine that it found.
std::string QuestionOf(const BackendDescriptor* graph, const BackendDescriptor& asked) {
  if (graph == nullptr) return "";
  std::int32_t mode = 0;
  if (const auto set = asked.attributes.find(kHeuristicMode);
      set != asked.attributes.end() && set->second.bytes.size() >= sizeof(mode)) {
    std::memcpy(&mode, set->second.bytes.data(), sizeof(mode));
  }
  return "{\"mode\":" + std::to_string(mode) + ",\"graph\":" + TextOf(*graph) + "}";
}

}  // namespace

std::string QuestionOf(const BackendDescriptor& plan) {
  const BackendDescriptor* engine = PartOf(PartOf(&plan, kPlanConfig), kConfigEngine);
  return engine == nullptr ? "" : QuestionOf(PartOf(engine, kEngineGraph), *engine);
}

std::string QuestionOfHeuristic(const BackendDescriptor& heuristic) {
  return QuestionOf(PartOf(&heuristic, kHeuristicGraph), heuristic);
}

std::string CudnnDeviceText(const Settings& settings, int device) {
  // Keys, with the numbers of cudaDeviceAttr.
  constexpr std::pair<std::string_view, int> kAttributes[] = {
      {"regsPerBlock", 12},
      {"multiProcessorCount", 16},
      {"warpSize", 10},
      {"maxSharedMemoryPerBlock", 8},
      {"maxSharedMemoryPerBlockOptin", 97},
      {"reservedSharedMemoryPerBlock", 111},
      {"maxRegistersPerSM", 82},
      {"maxCtasPerSM", 106},
      {"maxThreadsPerBlock", 1},
      {"maxThreadsPerSM", 39},
      {"pciDeviceId", 34},
      {"isTccDriver", 35},
      {"supportCoopLaunch", 95},
      {"smClockRateKHz", 13},
      {"memClockRateKHz", 36},
      {"l2CacheSize", 38},
  };
  const auto value = [&](int attribute) {
    return std::to_string(DeviceAttribute(settings, attribute, device).value_or(0));
  };
  std::string out = "{\"maxGridSize\":[" + value(5) + "," + value(6) + "," + value(7) + "],\"maxBlockSize\":[" +
                    value(2) + "," + value(3) + "," + value(4) + "]";
  for (const auto& [key, attribute] : kAttributes) out += ",\"" + std::string(key) + "\":" + value(attribute);
  out += ",\"totalGlobalMem\":" + std::to_string(settings.total_bytes) + ",\"cudaDeviceId\":" + std::to_string(device);
  out += ",\"deviceVer\":" + std::to_string(settings.compute_major * 100 + settings.compute_minor * 10);
  // 9.24 reads two more.
  out += ",\"driverVer\":" + std::to_string(settings.driver_version);
  return out + ",\"smCountOrigin\":0,\"deviceName\":\"GPU\"}";
}

}  // namespace ashlar::hollow
