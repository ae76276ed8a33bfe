// The messages of TensorFlow, JAX, CuPy, RMM, PaddlePaddle, ggml and Numba.
#include <algorithm>
#include <array>
#include <new>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/oom/oom_parser.h"

namespace ashlar::formats::oom {
namespace {

bool TakeDetailAfter(Cursor& cursor, absl::string_view words, std::size_t reach, OomMessage& message,
                     absl::string_view name, bool unit_optional = false) {
  std::optional<Figure> figure;
  if (!TakeFigureAfter(cursor, words, reach, message, figure, unit_optional)) return false;
  if (figure) message.details.push_back({std::string(name), *figure});
  return true;
}

void TakeDeviceAfter(Cursor cursor, absl::string_view words, std::size_t reach, OomMessage& message) {
  if (!cursor.SkipPast(words, reach)) return;
  const std::optional<std::int64_t> device = cursor.TakeInteger();
  if (device && *device <= 1'000'000) message.device = static_cast<int>(*device);
}

// The cursor up to `back` bytes before `at`.
Cursor Before(const SqueezedText& text, std::size_t at, std::size_t back) {
  return Cursor(text, at > back ? at - back : 0);
}

// "Allocator (GPU_0_bfc) ran out of memory trying to allocate 34.10MiB (rounded to 35758080)"
std::optional<FoundMessage> ParseBfcAllocator(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("tf-bfc", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  message.truncated = !TakeFigureAfter(cursor, "anoutofmemorytryingtoallocate", 1, message, message.tried);
  TakeDetailAfter(cursor, "(roundedto", 0, message, "rounded_to", /*unit_optional=*/true);
  Cursor look = Before(text, at, 24);
  TakeDeviceAfter(look, "Allocator(GPU_", 24, message);
  look = cursor;
  if (look.SkipPast("Thecallerindicatesthatthisisnotafailure", 24)) {
    message.AddNote("not_a_failure", "the caller went on with less memory: this text is a warning, nothing failed");
    cursor = look;
  }
  finding.end = cursor.at();
  return finding;
}

// Bytes of one element of the type TensorFlow names; 0 when not known.
std::uint64_t ElementBytes(absl::string_view type) {
  struct Type {
    const char* name;
    std::uint64_t bytes;
  };
  constexpr std::array<Type, 13> kTypes = {{{"float", 4},
                                            {"double", 8},
                                            {"half", 2},
                                            {"bfloat16", 2},
                                            {"int64", 8},
                                            {"int32", 4},
                                            {"int16", 2},
                                            {"int8", 1},
                                            {"uint8", 1},
                                            {"bool", 1},
                                            {"uint32", 4},
                                            {"uint64", 8},
                                            {"complex64", 8}}};
  for (const Type& entry : kTypes) {
    if (type == entry.name) return entry.bytes;
  }
  return 0;
}

// "[16,12,512,512]" as a number of elements; nullopt when not closed or not memory.
std::optional<std::uint64_t> TakeShape(Cursor& cursor) {
  if (!cursor.Take("[")) return std::nullopt;
  std::uint64_t elements = 1;
  while (const std::optional<std::int64_t> side = cursor.TakeInteger()) {
    const auto factor = static_cast<std::uint64_t>(*side);
    if (factor != 0 && elements > kImpossibleBytes / factor) return std::nullopt;
    elements *= factor;
    if (!cursor.Take(",")) break;
  }
  return cursor.Take("]") ? std::optional(elements) : std::nullopt;
}

// "OOM when allocating tensor with shape[16,12,512,512] and type float on /job:.../device:GPU:2 by allocator GPU_2_bfc"
std::optional<FoundMessage> ParseTensorShape(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("tf-bfc", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  if (!cursor.Take("OOMwhenallocatingtensorwithshape")) cursor.Take("OOMwhenallocatingtensorofshape");
  const std::size_t shape_at = cursor.at();
  const std::optional<std::uint64_t> elements = TakeShape(cursor);
  const std::size_t shape_end = cursor.at();
  finding.end = shape_end;
  message.truncated = true;
  if (!elements || !cursor.Take("andtype")) return finding;
  const absl::string_view rest = cursor.Rest();
  const std::size_t type_end = rest.find("on");
  if (type_end > 12) return finding;  // or npos
  const absl::string_view type = rest.substr(0, type_end);
  if (const std::uint64_t size = ElementBytes(type); size > 0 && *elements < kImpossibleBytes / size) {
    const std::uint64_t bytes = *elements * size;
    message.tried = Figure{bytes, bytes, absl::StrCat("shape", text.Raw(shape_at, shape_end), " of ", type)};
  }
  TakeDeviceAfter(cursor, "device:GPU:", 80, message);
  message.truncated = !cursor.SkipPast("byallocator", 120);
  finding.end = cursor.at();
  return finding;
}

// "failed to allocate 17.79G (19104890880 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
std::optional<FoundMessage> ParseDeviceAllocate(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("tf-bfc", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  cursor.Take("failedtoallocate");
  const std::optional<Figure> rounded = cursor.TakeFigure();
  if (!rounded || !cursor.Take("(")) return std::nullopt;
  const std::optional<Figure> exact = cursor.TakeFigure();
  if (!exact || !cursor.Take(")fromdevice:")) return std::nullopt;
  StoreFigure(message, message.tried, *exact, "failed to allocate");
  message.details.push_back({"printed", *rounded});
  message.truncated = !cursor.SkipPast("CUDA_ERROR_OUT_OF_MEMORY", 24);  // behind "RESOURCE_EXHAUSTED:" since 2.18
  finding.end = cursor.at();
  return finding;
}

// The pool's statistics at the end of the long form, each on its line: "Limit: 3341783040", "InUse: 2802453504", ...
// They are joined to the message they explain.
std::optional<FoundMessage> ParseBfcStatistics(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("tf-bfc", at);
  finding.kind = FindingKind::kBeside;
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  // Without a unit: what follows is the next line's name, and no unit.
  const auto take = [&](absl::string_view words, std::optional<Figure>& slot) {
    if (!cursor.Take(words)) return false;
    const std::optional<std::int64_t> bytes = cursor.TakeInteger();
    if (!bytes) return false;
    const auto value = static_cast<std::uint64_t>(*bytes);
    StoreFigure(message, slot, {value, value, absl::StrCat(value, " bytes")}, words);
    return true;
  };
  if (!take("Limit:", message.limit) || !take("InUse:", message.reserved)) return std::nullopt;
  finding.end = cursor.at();
  return finding;
}

// "Failed to allocate request for 1.50GiB (1610612736B) on device ordinal 0"
std::optional<FoundMessage> ParseXlaRequest(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("jax-xla", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  std::optional<Figure> printed;
  if (!TakeFigureAfter(cursor, "Failedtoallocaterequestfor", 0, message, printed)) return std::nullopt;
  message.truncated = !TakeFigureAfter(cursor, "(", 0, message, message.tried);
  if (!message.tried) message.tried = printed;
  if (printed && !message.truncated) message.details.push_back({"printed", *printed});
  TakeDeviceAfter(cursor, ")ondeviceordinal", 0, message);
  finding.end = cursor.at();
  return finding;
}

// "bfc_allocator.cc:246] tried to allocate 0 bytes"
std::optional<FoundMessage> ParseBfcTried(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("tf-bfc", at);
  Cursor cursor(text, at);
  cursor.Take("bfc_allocator.cc:");
  cursor.TakeInteger();
  if (!cursor.Take("]triedtoallocate")) return std::nullopt;
  const std::optional<Figure> figure = cursor.TakeFigure();
  if (!figure) return std::nullopt;
  StoreFigure(finding.message, finding.message.tried, *figure, "tried to allocate");
  if (figure->high_bytes == 0) {
    finding.message.AddNote("not_a_failure", "a request of 0 bytes is answered with nothing: no memory was missing");
  }
  finding.end = cursor.at();
  return finding;
}

// XLA's table of what the program was about to take.
void ReadBufferAssignment(Cursor& cursor, OomMessage& message) {
  Cursor look = cursor;
  if (!look.SkipPast("BufferAssignmentstats:", 120)) return;
  for (const absl::string_view name : {"parameter allocation", "constant allocation", "maybe_live_out allocation",
                                       "preallocated temp allocation", "total allocation", "total fragmentation"}) {
    std::string words(name);
    words.erase(std::remove(words.begin(), words.end(), ' '), words.end());
    TakeDetailAfter(look, words + ":", 80, message, name);
  }
  cursor = look;
}

// "Out of memory while trying to allocate 4770354232 bytes." and "RESOURCE_EXHAUSTED: Out of memory allocating 200
// bytes."
std::optional<FoundMessage> ParseXla(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("jax-xla", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  message.truncated = !TakeFigureAfter(cursor, "tryingtoallocate", 24, message, message.tried) &&
                      !TakeFigureAfter(cursor, "memoryallocating", 24, message, message.tried);
  ReadBufferAssignment(cursor, message);
  finding.end = cursor.at();
  return finding;
}

// "Out of memory allocating 761,856,000 bytes (allocated so far: 6,104,426,496 bytes, limit set to: 6,531,579,904
// bytes)."
std::optional<FoundMessage> ParseCupy(const SqueezedText& text, std::size_t at) {
  if (absl::EndsWith(text.text().substr(0, at), "RESOURCE_EXHAUSTED:")) return std::nullopt;
  FoundMessage finding = Begin("cupy", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  if (!TakeFigureAfter(cursor, "Outofmemoryallocating", 0, message, message.tried)) return std::nullopt;
  if (cursor.Take("(")) {
    message.truncated = !TakeFigureAfter(cursor, "allocatedsofar:", 0, message, message.reserved);
    std::optional<Figure> limit;
    if (TakeFigureAfter(cursor, ",limitsetto:", 0, message, message.limit) && !message.limit) {
      message.notes.clear();
      message.AddNote("no_limit", "the limit printed is the largest number there is: no limit is set");
    }
    message.truncated = !cursor.Take(")") || message.truncated;
  }
  finding.end = cursor.at();
  return finding;
}

// "out of memory to allocate 1073741824 bytes (total 12373894656 bytes)": total = what the pool holds plus this request
std::optional<FoundMessage> ParseCupyOld(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("cupy", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  if (!TakeFigureAfter(cursor, "outofmemorytoallocate", 0, message, message.tried)) return std::nullopt;
  if (!cursor.Sees("(") && !cursor.AtEnd()) return std::nullopt;
  message.truncated = !TakeDetailAfter(cursor, "(total", 0, message, "total_with_request") || !cursor.Take(")");
  const Figure* const whole = message.Detail("total_with_request");
  if (whole != nullptr && message.tried && whole->low_bytes >= message.tried->high_bytes) {
    const std::uint64_t held = whole->low_bytes - message.tried->high_bytes;
    message.reserved = Figure{held, held, absl::StrCat(held, " bytes")};
  }
  finding.end = cursor.at();
  return finding;
}

// "std::bad_alloc: out_of_memory: CUDA error (failed to allocate 2778950720 bytes) at: .../cuda_memory_resource.hpp:68:
// ..."
std::optional<FoundMessage> ParseRmm(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("rmm", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  cursor.Take("std::bad_alloc:");
  Cursor look = cursor;
  look.Take("out_of_memory:");
  // Thrust says the last as well, where a C++ program ends by it.
  const bool ours =
      look.Sees("CUDAerror") || look.Sees("RMMfailure") || look.Sees("Maximumpoolsizeexceeded") ||
      (look.Sees("cudaErrorMemoryAllocation") && absl::EndsWith(text.text().substr(0, at), "MemoryError:"));
  if (!ours) return std::nullopt;
  TakeFigureAfter(look, "failedtoallocate", 40, message, message.tried);
  finding.end = look.at();
  if (look.SkipPast("at:", 24)) {
    message.truncated = !look.SkipPast("pp:", 300) || !look.TakeInteger();
    finding.end = look.at();
  }
  if (look.SkipPast("Maximumpoolsizeexceeded", 8)) {
    message.AddNote("pool_limit", "the pool's own maximum size stopped it, whatever the device has left");
    TakeFigureAfter(look, "failedtoallocate", 8, message, message.tried);
    if (look.SkipPast("current/max/trysize=", 40)) {
      TakeFigureAfter(look, "", 0, message, message.reserved);
      TakeFigureAfter(look, ",", 0, message, message.limit);
      TakeDetailAfter(look, ",", 0, message, "printed");
    }
    finding.end = look.at();
  }
  return finding;
}

// "Out of memory error on GPU 0. Cannot allocate 3.62GB memory on GPU 0, 21.18GB memory has been allocated and
// available memory is only 2.81GB." The second figure is total - available: everything on the device, whoever holds it.
std::optional<FoundMessage> ParsePaddle(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("paddle", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  TakeDeviceAfter(cursor, "OutofmemoryerroronGPU", 0, message);
  TakeFigureAfter(cursor, "Cannotallocate", 60, message, message.tried);
  Cursor look = cursor;
  std::optional<Figure> in_use;
  if (look.SkipPast("memoryonGPU", 4) && look.TakeInteger()) TakeFigureAfter(look, ",", 0, message, in_use);
  message.truncated = !TakeFigureAfter(look, "availablememoryisonly", 60, message, message.free);
  if (in_use) message.details.push_back({"in_use_on_device", *in_use});
  if (in_use && message.free) {
    message.total = Figure{in_use->low_bytes + message.free->low_bytes, in_use->high_bytes + message.free->high_bytes,
                           absl::StrCat(in_use->printed, " + ", message.free->printed)};
  }
  finding.end = look.at();
  return finding;
}

// "enforce allocating <= available failed, 10513462067 > 1369702144"
std::optional<FoundMessage> ParsePaddleFluid(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("paddle", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  const bool tried = TakeFigureAfter(cursor, "enforceallocating<=availablefailed,", 0, message, message.tried, true);
  message.truncated = !tried || !TakeFigureAfter(cursor, ">", 0, message, message.free, true);
  finding.end = cursor.at();
  return finding;
}

// "cudaMalloc failed: out of memory" and, on the next line, "failed to allocate CUDA0 buffer of size 838447104"
std::optional<FoundMessage> ParseGgmlBuffer(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("ggml", at);
  Cursor cursor(text, at);
  cursor.SkipPast("failed:outofmemory", 12);
  finding.end = cursor.at();
  if (!cursor.SkipPast("failedtoallocateCUDA", 80)) return finding;
  TakeDeviceAfter(cursor, "", 0, finding.message);
  if (TakeFigureAfter(cursor, "bufferofsize", 4, finding.message, finding.message.tried, /*unit_optional=*/true)) {
    finding.end = cursor.at();
  }
  return finding;
}

// "allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory" and, on the next line, "... buffer of size
// 151851674624", the same bytes exactly
std::optional<FoundMessage> ParseGgml(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("ggml", at);
  OomMessage& message = finding.message;
  const std::size_t from = at > 80 ? at - 80 : 0;
  const std::size_t words = text.text().substr(from, at - from).rfind("allocating");
  if (words == absl::string_view::npos) return ParseGgmlBuffer(text, at);
  finding.begin = from + words;
  Cursor before(text, finding.begin);
  std::optional<Figure> printed;
  TakeFigureAfter(before, "allocating", 0, message, printed);
  TakeDeviceAfter(before, "ondevice", 0, message);
  Cursor cursor(text, at);
  cursor.SkipPast("failed:outofmemory", 12);
  finding.end = cursor.at();
  std::optional<Figure> exact;
  if (TakeFigureAfter(cursor, "bufferofsize", 90, message, exact, /*unit_optional=*/true) && exact && printed &&
      exact->low_bytes >= printed->low_bytes && exact->low_bytes <= printed->high_bytes) {
    message.tried = exact;
    message.details.push_back({"printed", *printed});
    finding.end = cursor.at();
  } else {
    message.tried = printed;
  }
  message.truncated = !printed;
  return finding;
}

std::optional<FoundMessage> ParseNumba(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("numba", at);
  finding.end = at + absl::string_view("resultsinCUDA_ERROR_OUT_OF_MEMORY").size();
  (void)text;
  return finding;
}

}  // namespace

const std::vector<Anchor>& FrameworkAnchors() {
  static const auto& anchors = *new std::vector<Anchor>{{"ranoutofmemorytryingtoallocate", &ParseBfcAllocator},
                                                        {"Ranoutofmemorytryingtoallocate", &ParseBfcAllocator},
                                                        {"OOMwhenallocatingtensorwithshape", &ParseTensorShape},
                                                        {"OOMwhenallocatingtensorofshape", &ParseTensorShape},
                                                        {"Limit:", &ParseBfcStatistics},
                                                        {"Failedtoallocaterequestfor", &ParseXlaRequest},
                                                        {"failedtoallocate", &ParseDeviceAllocate},
                                                        {"bfc_allocator.cc:", &ParseBfcTried},
                                                        {"Outofmemorywhiletryingtoallocate", &ParseXla},
                                                        {"RESOURCE_EXHAUSTED:Outofmemoryallocating", &ParseXla},
                                                        {"Outofmemoryallocating", &ParseCupy},
                                                        {"outofmemorytoallocate", &ParseCupyOld},
                                                        {"std::bad_alloc:", &ParseRmm},
                                                        {"OutofmemoryerroronGPU", &ParsePaddle},
                                                        {"enforceallocating<=availablefailed,", &ParsePaddleFluid},
                                                        {"cudaMallocfailed:outofmemory", &ParseGgml},
                                                        {"resultsinCUDA_ERROR_OUT_OF_MEMORY", &ParseNumba}};
  return anchors;
}

}  // namespace ashlar::formats::oom
