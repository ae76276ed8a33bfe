// cuFFT: plans and their work areas. Transforms are work for the device (names/cufft.inc); those over several devices
// are not supported.
//
// Signatures: cufft.h and cufftXt.h of CUDA 11.8, 12.4 and 13.0. A plan is a number.
#include "hollow/api/cufft/cufft.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "hollow/api/real_library.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

extern "C" int cudaMalloc(void** address, std::size_t bytes);
extern "C" int cudaFree(void* address);

namespace ashlar::hollow {

bool HasLargePrime(std::int64_t length) {
  constexpr std::int64_t kLargestSmallPrime = 127;
  for (std::int64_t factor = 2; factor <= kLargestSmallPrime; ++factor) {
    while (length > 1 && length % factor == 0) length /= factor;
  }
  return length > 1;
}

std::uint64_t WorkAreaBytes(const std::vector<std::int64_t>& lengths, std::int64_t batch, std::uint64_t element_bytes) {
  std::uint64_t bytes = static_cast<std::uint64_t>(batch) * element_bytes;
  bool large = false;
  for (const std::int64_t length : lengths) {
    bytes *= static_cast<std::uint64_t>(length);
    large = large || HasLargePrime(length);
  }
  return large ? bytes * 8 : bytes;
}

namespace {

// cufftResult.
constexpr int kCufftInvalidPlan = 1;
constexpr int kCufftAllocFailed = 2;
constexpr int kCufftInvalidType = 3;
constexpr int kCufftInvalidValue = 4;
constexpr int kCufftSetupFailed = 7;
constexpr int kCufftInvalidSize = 8;

struct CufftPlan {
  void* stream = nullptr;
  bool allocates = true;  // its work area by itself
  bool made = false;
  std::uint64_t work_bytes = 0;
  void* own_area = nullptr;
};

struct CufftPlans {
  std::mutex mutex;
  std::map<int, CufftPlan> by_number;
  int last = 0;
};
CufftPlans& ThePlans() {
  static auto* plans = new CufftPlans;  // never destroyed: a program may free a plan while it ends
  return *plans;
}

// cufftType: C2C 0x29, R2C 0x2a, C2R 0x2c of single precision, Z2Z 0x69, D2Z 0x6a, Z2D 0x6c of double.
std::uint64_t ComplexBytes(int type) {
  switch (type) {
    case 0x29:
    case 0x2a:
    case 0x2c:
      return 8;
    case 0x69:
    case 0x6a:
    case 0x6c:
      return 16;
    default:
      return 0;
  }
}

// The size of a transform's work area; kCufftSuccess is 0.
int EstimateArea(const std::vector<std::int64_t>& lengths, std::int64_t batch, std::uint64_t element_bytes,
                 std::size_t* bytes) {
  if (element_bytes == 0) return kCufftInvalidType;
  if (lengths.empty() || lengths.size() > 3 || batch < 1) return kCufftInvalidSize;
  for (const std::int64_t length : lengths) {
    if (length < 1) return kCufftInvalidSize;
  }
  if (bytes == nullptr) return kCufftInvalidValue;
  *bytes = WorkAreaBytes(lengths, batch, element_bytes);
  return 0;
}

template <class Count>
std::vector<std::int64_t> PlanLengths(int rank, const Count* lengths) {
  if (rank < 1 || rank > 3 || lengths == nullptr) return {};
  return {lengths, lengths + rank};
}

int CreatePlan(int* number) {
  if (number == nullptr) return kCufftInvalidValue;
  if (cudaFree(nullptr) != 0) return kCufftSetupFailed;  // it makes the device's context, as the library does
  CufftPlans& plans = ThePlans();
  const std::lock_guard lock(plans.mutex);
  *number = ++plans.last;
  plans.by_number[*number] = {};
  return 0;
}

// The area that a plan takes by itself is device memory like any other.
int MakePlan(int number, const std::vector<std::int64_t>& lengths, std::int64_t batch, std::uint64_t element_bytes,
             std::size_t* bytes) {
  std::size_t needed = 0;
  if (const int status = EstimateArea(lengths, batch, element_bytes, &needed); status != 0) return status;
  CufftPlans& plans = ThePlans();
  const std::lock_guard lock(plans.mutex);
  const auto plan = plans.by_number.find(number);
  if (plan == plans.by_number.end() || plan->second.made) return kCufftInvalidPlan;
  if (plan->second.allocates && needed != 0 && cudaMalloc(&plan->second.own_area, needed) != 0) {
    return kCufftAllocFailed;
  }
  plan->second.work_bytes = needed;
  plan->second.made = true;
  if (bytes != nullptr) *bytes = needed;
  return 0;
}

int DestroyPlan(int number) {
  CufftPlans& plans = ThePlans();
  const std::lock_guard lock(plans.mutex);
  const auto plan = plans.by_number.find(number);
  if (plan == plans.by_number.end()) return kCufftInvalidPlan;
  if (plan->second.own_area != nullptr) cudaFree(plan->second.own_area);
  plans.by_number.erase(plan);
  return 0;
}

int CreateAndMake(int* number, const std::vector<std::int64_t>& lengths, std::int64_t batch, int type) {
  int status = CreatePlan(number);
  if (status != 0) return status;
  status = MakePlan(*number, lengths, batch, ComplexBytes(type), nullptr);
  if (status != 0) DestroyPlan(*number);
  return status;
}

template <class Edit>
int ChangePlan(int number, Edit edit) {
  CufftPlans& plans = ThePlans();
  const std::lock_guard lock(plans.mutex);
  const auto plan = plans.by_number.find(number);
  if (plan == plans.by_number.end()) return kCufftInvalidPlan;
  return edit(plan->second);
}
int KnownPlan(int number) {
  return ChangePlan(number, [](CufftPlan&) { return 0; });
}
int SizePlan(int number, const std::vector<std::int64_t>& lengths, std::int64_t batch, std::uint64_t element_bytes,
             std::size_t* bytes) {
  const int status = KnownPlan(number);
  return status != 0 ? status : EstimateArea(lengths, batch, element_bytes, bytes);
}

}  // namespace

int LaunchCufft(int number) {
  return ChangePlan(number, [](CufftPlan& plan) {
    if (!plan.made) return kCufftInvalidPlan;
    CountLaunch(plan.stream);
    return 0;
  });
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cufftCreate(int* plan) { return CreatePlan(plan); }
ASHLAR_SURFACE int cufftDestroy(int plan) { return DestroyPlan(plan); }
ASHLAR_SURFACE int cufftPlan1d(int* plan, int x, int type, int batch) { return CreateAndMake(plan, {x}, batch, type); }
ASHLAR_SURFACE int cufftPlan2d(int* plan, int x, int y, int type) { return CreateAndMake(plan, {x, y}, 1, type); }
ASHLAR_SURFACE int cufftPlan3d(int* plan, int x, int y, int z, int type) {
  return CreateAndMake(plan, {x, y, z}, 1, type);
}
ASHLAR_SURFACE int cufftPlanMany(int* plan, int rank, int* lengths, int*, int, int, int*, int, int, int type,
                                 int batch) {
  return CreateAndMake(plan, PlanLengths(rank, lengths), batch, type);
}

// A plan is made, or its size asked: of one, two, three or many dimensions.
#define ASHLAR_CUFFT_SIZES(one, two, three, many, work)                                                             \
  ASHLAR_SURFACE int one(int plan, int x, int type, int batch, std::size_t* bytes) {                                \
    return work(plan, {x}, batch, ComplexBytes(type), bytes);                                                       \
  }                                                                                                                 \
  ASHLAR_SURFACE int two(int plan, int x, int y, int type, std::size_t* bytes) {                                    \
    return work(plan, {x, y}, 1, ComplexBytes(type), bytes);                                                        \
  }                                                                                                                 \
  ASHLAR_SURFACE int three(int plan, int x, int y, int z, int type, std::size_t* bytes) {                           \
    return work(plan, {x, y, z}, 1, ComplexBytes(type), bytes);                                                     \
  }                                                                                                                 \
  ASHLAR_SURFACE int many(int plan, int rank, int* lengths, int*, int, int, int*, int, int, int type, int batch,    \
                          std::size_t* bytes) {                                                                     \
    return work(plan, PlanLengths(rank, lengths), batch, ComplexBytes(type), bytes);                                \
  }                                                                                                                 \
  ASHLAR_SURFACE int many##64(int plan, int rank, long long* lengths, long long*, long long, long long, long long*, \
                              long long, long long, int type, long long batch, std::size_t* bytes) {                \
    return work(plan, PlanLengths(rank, lengths), batch, ComplexBytes(type), bytes);                                \
  }
ASHLAR_CUFFT_SIZES(cufftMakePlan1d, cufftMakePlan2d, cufftMakePlan3d, cufftMakePlanMany, MakePlan)
ASHLAR_CUFFT_SIZES(cufftGetSize1d, cufftGetSize2d, cufftGetSize3d, cufftGetSizeMany, SizePlan)

// By data types: half and bfloat16 too.
#define ASHLAR_CUFFT_TYPED(name, work)                                                                               \
  ASHLAR_SURFACE int name(int plan, int rank, long long* lengths, long long*, long long, long long, int, long long*, \
                          long long, long long, int, long long batch, std::size_t* bytes, int execution_type) {      \
    return work(plan, PlanLengths(rank, lengths), batch, CudaTypeBytes(execution_type), bytes);                      \
  }
ASHLAR_CUFFT_TYPED(cufftXtMakePlanMany, MakePlan)
ASHLAR_CUFFT_TYPED(cufftXtGetSizeMany, SizePlan)

ASHLAR_SURFACE int cufftEstimate1d(int x, int type, int batch, std::size_t* bytes) {
  return EstimateArea({x}, batch, ComplexBytes(type), bytes);
}
ASHLAR_SURFACE int cufftEstimate2d(int x, int y, int type, std::size_t* bytes) {
  return EstimateArea({x, y}, 1, ComplexBytes(type), bytes);
}
ASHLAR_SURFACE int cufftEstimate3d(int x, int y, int z, int type, std::size_t* bytes) {
  return EstimateArea({x, y, z}, 1, ComplexBytes(type), bytes);
}
ASHLAR_SURFACE int cufftEstimateMany(int rank, int* lengths, int*, int, int, int*, int, int, int type, int batch,
                                     std::size_t* bytes) {
  return EstimateArea(PlanLengths(rank, lengths), batch, ComplexBytes(type), bytes);
}
ASHLAR_SURFACE int cufftGetSize(int plan, std::size_t* bytes) {
  return ChangePlan(plan, [bytes](CufftPlan& mine) {
    if (!mine.made) return kCufftInvalidPlan;
    if (bytes == nullptr) return kCufftInvalidValue;
    *bytes = mine.work_bytes;
    return 0;
  });
}
ASHLAR_SURFACE int cufftSetStream(int plan, void* stream) {
  return ChangePlan(plan, [stream](CufftPlan& mine) {
    mine.stream = stream;
    return 0;
  });
}
ASHLAR_SURFACE int cufftSetAutoAllocation(int plan, int allocates) {
  return ChangePlan(plan, [allocates](CufftPlan& mine) {
    if (mine.made) return kCufftInvalidPlan;
    mine.allocates = allocates != 0;
    return 0;
  });
}
// The caller's area takes the place of the plan's own.
ASHLAR_SURFACE int cufftSetWorkArea(int plan, void* area) {
  return ChangePlan(plan, [area](CufftPlan& mine) {
    if (area != nullptr && mine.own_area != nullptr) {
      cudaFree(mine.own_area);
      mine.own_area = nullptr;
    }
    return 0;
  });
}
ASHLAR_SURFACE int cufftGetProperty(int type, int* value) {
  constexpr int kCufftVersion = 110'201;  // where the program brought none: cuFFT 11.2.1
  return RealProperty("libcufft.so.", "cufftGetProperty", kCufftVersion, type, value) ? 0 : kCufftInvalidValue;
}
ASHLAR_SURFACE int cufftGetVersion(int* version) {
  if (version == nullptr) return kCufftInvalidValue;
  int part[3] = {};
  for (int type = 0; type < 3; ++type) cufftGetProperty(type, &part[type]);
  *version = part[0] * 1000 + part[1] * 100 + part[2];  // CUFFT_VERSION
  return 0;
}
