#include "tests/fake_cuda/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ashlar::device {
namespace {

constexpr int kFirstDeviceId = 0xd0;  // a device's id is a name of the driver's, no ordinal

// Newest last.
std::vector<FakeCuda*>& Worlds() {
  static auto* const worlds = new std::vector<FakeCuda*>;
  return *worlds;
}

FakeCudaOptions OfTheEnvironment() {
  const char* const devices = std::getenv("FAKE_CUDA_DEVICES");
  FakeCudaOptions options;
  options.device_count = devices == nullptr ? 1 : std::atoi(devices);
  options.events_complete_immediately = true;
  return options;
}

std::string Counted(std::size_t count, const char* what) { return std::to_string(count) + what; }

}  // namespace

void FakeCuda::Misuse(const char* call, const std::string& what) {
  std::fprintf(stderr, "fake CUDA: %s: %s\n", call, what.c_str());
  std::abort();
}

void FakeCuda::Require(bool is_right, const char* call, const std::string& otherwise) {
  if (!is_right) Misuse(call, otherwise);
}

FakeCuda& FakeCuda::Called() {
  if (!Worlds().empty()) return *Worlds().back();
  static FakeCuda world(OfTheEnvironment());
  return world;
}

FakeCuda::FakeCuda(FakeCudaOptions options)
    : options_(std::move(options)), devices_(static_cast<std::size_t>(options_.device_count)) {
  Worlds().push_back(this);
}

FakeCuda::~FakeCuda() {
  std::erase(Worlds(), this);
  const char* call = "the end";
  Require(segments_.empty(), call, Counted(segments_.size(), " ranges of cuMemAlloc are not freed"));
  Require(mappings_.empty(), call, Counted(mappings_.size(), " ranges are still mapped"));
  Require(memory_.empty(), call, Counted(memory_.size(), " handles are not released"));
  Require(reservations_.empty(), call, Counted(reservations_.size(), " address ranges are not freed"));
  Require(events_.empty(), call, Counted(events_.size(), " events are not destroyed"));
  for (const PerDevice& device : devices_) Require(device.retain_count == 0, call, "a primary context is retained");
}

int FakeCuda::OrdinalOf(CudaDeviceId device) const {
  const int ordinal = device - kFirstDeviceId;
  return ordinal >= 0 && ordinal < options_.device_count ? ordinal : -1;
}

int FakeCuda::CurrentDevice(const char* call) const {
  for (int ordinal = 0; ordinal < options_.device_count; ++ordinal) {
    if (current() == ContextOf(ordinal) && HasContext(ordinal)) return ordinal;
  }
  Misuse(call, "no device's primary context is current");
}

bool FakeCuda::Charge(int ordinal, std::uint64_t size_bytes) {
  PerDevice& device = At(ordinal);
  if (size_bytes > options_.capacity_bytes - device.used_bytes) return false;
  device.used_bytes += size_bytes;
  return true;
}

int FakeCuda::Init() {
  if (const auto code = Fails("cuInit")) return *code;
  return options_.device_count == 0 ? kCudaErrorNoDevice : kCudaSuccess;
}

int FakeCuda::DeviceGetCount(int* count) {
  if (const auto code = Fails("cuDeviceGetCount")) return *code;
  *count = options_.device_count;
  return kCudaSuccess;
}

int FakeCuda::DeviceGet(CudaDeviceId* device, int ordinal) {
  if (const auto code = Fails("cuDeviceGet")) return *code;
  if (ordinal < 0 || ordinal >= options_.device_count) return kCudaErrorInvalidDevice;
  *device = kFirstDeviceId + ordinal;
  return kCudaSuccess;
}

int FakeCuda::DeviceGetAttribute(int* value, CudaAttribute attribute, CudaDeviceId device) {
  if (const auto code = Fails("cuDeviceGetAttribute")) return *code;
  if (OrdinalOf(device) < 0) return kCudaErrorInvalidDevice;
  if (attribute == CudaAttribute::kFabricHandles && FakeCudaVersion() < 12030) return kCudaErrorInvalidValue;
  *value = options_.lacks.contains(attribute) ? 0 : 1;
  return kCudaSuccess;
}

int FakeCuda::PrimaryRetain(CudaContext* context, CudaDeviceId device) {
  if (const auto code = Fails("cuDevicePrimaryCtxRetain")) return *code;
  const int ordinal = OrdinalOf(device);
  if (ordinal < 0) return kCudaErrorInvalidDevice;
  if (At(ordinal).retain_count++ == 0 && At(ordinal).context_id == 0) At(ordinal).context_id = next_id_++;
  *context = ContextOf(ordinal);
  return kCudaSuccess;
}

int FakeCuda::PrimaryRelease(CudaDeviceId device) {
  if (const auto code = Fails("cuDevicePrimaryCtxRelease")) return *code;
  const int ordinal = OrdinalOf(device);
  const bool is_retained = ordinal >= 0 && HasContext(ordinal);
  Require(is_retained, "cuDevicePrimaryCtxRelease", "the context is not retained");
  if (--At(ordinal).retain_count == 0) At(ordinal).context_id = 0;
  return kCudaSuccess;
}

int FakeCuda::PrimaryGetState(CudaDeviceId device, unsigned* flags, int* is_active) {
  if (const auto code = Fails("cuDevicePrimaryCtxGetState")) return *code;
  const int ordinal = OrdinalOf(device);
  if (ordinal < 0) return kCudaErrorInvalidDevice;
  *flags = 0;
  *is_active = At(ordinal).context_id == 0 ? 0 : 1;
  return kCudaSuccess;
}

int FakeCuda::PrimaryReset(CudaDeviceId device) {
  if (const auto code = Fails("cuDevicePrimaryCtxReset")) return *code;
  const int ordinal = OrdinalOf(device);
  if (ordinal < 0) return kCudaErrorInvalidDevice;
  ResetDevice(ordinal, false);
  return kCudaSuccess;
}

int FakeCuda::ContextGetCurrent(CudaContext* context) {
  if (const auto code = Fails("cuCtxGetCurrent")) return *code;
  *context = current();
  return kCudaSuccess;
}

int FakeCuda::ContextGetId(CudaContext context, std::uint64_t* id) {
  if (const auto code = Fails("cuCtxGetId")) return *code;
  for (int ordinal = 0; ordinal < options_.device_count; ++ordinal) {
    *id = At(ordinal).context_id;
    if (context == ContextOf(ordinal)) return *id == 0 ? kCudaErrorContextIsDestroyed : kCudaSuccess;
  }
  Misuse("cuCtxGetId", "this is no device's context");
}

int FakeCuda::ContextPush(CudaContext context) {
  if (const auto code = Fails("cuCtxPushCurrent")) return *code;
  Require(contexts_.size() < 8, "cuCtxPushCurrent", "contexts are pushed and not popped");
  contexts_.push_back(context);
  return kCudaSuccess;
}

int FakeCuda::ContextPop(CudaContext* context) {
  if (const auto code = Fails("cuCtxPopCurrent")) return *code;
  Require(contexts_.size() > 1, "cuCtxPopCurrent", "no context was pushed");
  *context = current();
  contexts_.pop_back();
  return kCudaSuccess;
}

int FakeCuda::ContextSynchronize() {
  if (const auto code = Fails("cuCtxSynchronize")) return *code;
  RequireNoCapture("cuCtxSynchronize");
  CurrentDevice("cuCtxSynchronize");
  streams_.FinishAll();
  return kCudaSuccess;
}

int FakeCuda::MemAlloc(std::uint64_t* address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cuMemAlloc")) return *code;
  const bool breaks_capture = is_capturing_ && capture_mode_ != CudaCaptureMode::kRelaxed;
  Require(!breaks_capture, "cuMemAlloc", "a stream is being captured, and the thread's capture mode is not relaxed");
  const int ordinal = CurrentDevice("cuMemAlloc");
  if (size_bytes > options_.capacity_bytes) return kCudaErrorOutOfMemory;
  const std::uint64_t charged = RoundUp(size_bytes, options_.granularity_bytes);
  if (!Charge(ordinal, charged)) return kCudaErrorOutOfMemory;
  *address = next_address_;
  next_address_ += charged + options_.granularity_bytes;
  segments_[*address] = {charged, ordinal};
  return kCudaSuccess;
}

int FakeCuda::MemFree(std::uint64_t address) {
  if (const auto code = Fails("cuMemFree")) return *code;
  RequireNoCapture("cuMemFree");
  CurrentDevice("cuMemFree");
  const auto it = segments_.find(address);
  Require(it != segments_.end(), "cuMemFree", std::to_string(address) + " is not allocated");
  At(it->second.ordinal).used_bytes -= it->second.charged_bytes;
  segments_.erase(it);
  return kCudaSuccess;
}

int FakeCuda::MemGetInfo(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  if (const auto code = Fails("cuMemGetInfo")) return *code;
  *total_bytes = options_.capacity_bytes;
  *free_bytes = options_.capacity_bytes - used_bytes(CurrentDevice("cuMemGetInfo"));
  return kCudaSuccess;
}

int FakeCuda::EventCreate(CudaEvent* event, unsigned flags) {
  if (const auto code = Fails("cuEventCreate")) return *code;
  Require(flags == kCudaEventDisableTiming, "cuEventCreate", "an event with timing costs more");
  *event = reinterpret_cast<CudaEvent>(std::uintptr_t{0xe000'0000} + next_id_++);
  events_[*event].ordinal = CurrentDevice("cuEventCreate");
  return kCudaSuccess;
}

FakeCuda::Event& FakeCuda::LiveEvent(const char* call, CudaEvent event) {
  const auto it = events_.find(event);
  Require(it != events_.end(), call, "this event does not exist, or was destroyed");
  Require(it->second.ordinal == CurrentDevice(call), call, "this event belongs to another device");
  return it->second;
}

int FakeCuda::EventDestroy(CudaEvent event) {
  if (const auto code = Fails("cuEventDestroy")) return *code;
  LiveEvent("cuEventDestroy", event);
  events_.erase(event);
  return kCudaSuccess;
}

int FakeCuda::EventRecord(CudaEvent event, CudaStream stream) {
  if (const auto code = Fails("cuEventRecord")) return *code;
  RequireNoCapture("cuEventRecord");
  Event& recorded = LiveEvent("cuEventRecord", event);
  if (destroyed_.contains(stream)) return kCudaErrorInvalidHandle;
  const auto device = stream_device_.find(stream);
  if (device != stream_device_.end() && device->second != recorded.ordinal) return kCudaErrorInvalidHandle;
  recorded = {recorded.ordinal, true, streams_.Record(stream)};
  return kCudaSuccess;
}

bool FakeCuda::IsDone(const Event& event) const {
  return options_.events_complete_immediately || streams_.IsDone(event.point);
}

int FakeCuda::EventQuery(CudaEvent event) {
  if (const auto code = Fails("cuEventQuery")) return *code;
  RequireNoCapture("cuEventQuery");
  const Event& queried = LiveEvent("cuEventQuery", event);
  Require(queried.is_recorded, "cuEventQuery", "this event was never recorded: it would answer done");
  return IsDone(queried) ? kCudaSuccess : kCudaErrorNotReady;
}

int FakeCuda::EventSynchronize(CudaEvent event) {
  if (const auto code = Fails("cuEventSynchronize")) return *code;
  RequireNoCapture("cuEventSynchronize");
  const Event& waited = LiveEvent("cuEventSynchronize", event);
  Require(waited.is_recorded, "cuEventSynchronize", "this event was never recorded: it would not wait");
  streams_.Finish(waited.point);
  return kCudaSuccess;
}

int FakeCuda::StreamSynchronize(CudaStream stream) {
  if (const auto code = Fails("cuStreamSynchronize")) return *code;
  RequireNoCapture("cuStreamSynchronize");
  CurrentDevice("cuStreamSynchronize");
  if (destroyed_.contains(stream)) return kCudaErrorInvalidHandle;
  streams_.FinishStream(stream);
  return kCudaSuccess;
}

namespace {

std::vector<CudaNode> NodesOf(const std::vector<std::uint64_t>& numbers) {
  std::vector<CudaNode> out;
  for (const std::uint64_t number : numbers)
    out.push_back(reinterpret_cast<CudaNode>(static_cast<std::uintptr_t>(number)));
  return out;
}

}  // namespace

void FakeCuda::PutInCapture(Stream stream, std::uint64_t id, const std::vector<std::uint64_t>& nodes) {
  captures_[Native(stream)] = {id, NodesOf(nodes), std::vector<CudaEdge>(nodes.size())};
}

void FakeCuda::PutBefore(std::uint64_t node, const std::vector<std::uint64_t>& nodes) {
  before_[NodesOf({node}).front()] = NodesOf(nodes);
}

int FakeCuda::StreamGetCaptureInfo(CudaStream stream, int* status, std::uint64_t* id, const CudaNode** nodes,
                                   const CudaEdge** edges, std::size_t* count) {
  if (const auto code = Fails("cuStreamGetCaptureInfo")) return *code;
  Require(stream != nullptr, "cuStreamGetCaptureInfo", "the legacy default stream breaks what is captured");
  const auto it = captures_.find(stream);
  *status = it == captures_.end() ? 0 : kCudaCaptureActive;
  if (it == captures_.end()) return kCudaSuccess;
  *id = it->second.id;
  *nodes = it->second.nodes.data();
  *edges = it->second.edges.data();
  *count = it->second.nodes.size();
  return kCudaSuccess;
}

int FakeCuda::GraphNodeGetDependencies(CudaNode node, CudaNode* nodes, CudaEdge* edges, std::size_t* count) {
  if (const auto code = Fails("cuGraphNodeGetDependencies")) return *code;
  const std::vector<CudaNode>& before = before_[node];
  if (nodes != nullptr) {
    Require(edges != nullptr && *count >= before.size(), "cuGraphNodeGetDependencies", "there is no room for all");
    std::copy(before.begin(), before.end(), nodes);
  }
  *count = before.size();
  return kCudaSuccess;
}

int FakeCuda::StreamWaitEvent(CudaStream stream, CudaEvent event, unsigned flags) {
  if (const auto code = Fails("cuStreamWaitEvent")) return *code;
  Require(flags == kCudaStreamWaitDefault, "cuStreamWaitEvent", "the flags are not known");
  RequireNoCapture("cuStreamWaitEvent");
  const Event& waited = LiveEvent("cuStreamWaitEvent", event);
  Require(waited.is_recorded, "cuStreamWaitEvent", "this event was never recorded: nothing would wait");
  if (destroyed_.contains(stream)) return kCudaErrorInvalidHandle;
  if (!options_.events_complete_immediately) streams_.Wait(stream, waited.point);
  return kCudaSuccess;
}

int FakeCuda::ExchangeCaptureMode(CudaCaptureMode* mode) {
  if (const auto code = Fails("cuThreadExchangeStreamCaptureMode")) return *code;
  std::swap(*mode, capture_mode_);
  return kCudaSuccess;
}

void FakeCuda::RequireNoCapture(const char* call) const {
  Require(!is_capturing_, call, "a stream is being captured, which this call breaks");
}

}  // namespace ashlar::device
