// cuRAND, the host interface: generators whose numbers are written to the device (names/curand.inc). A generator for
// host memory is not supported: its numbers would be the program's values.
//
// Signatures: curand.h of CUDA 11.8, 12.4 and 13.0.
#include <cstdint>

#include "hollow/api/objects.h"
#include "hollow/api/real_library.h"
#include "hollow/api/surface.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

// curandStatus_t.
constexpr int kCurandNotInitialized = 101;
constexpr int kCurandOutOfRange = 104;
constexpr int kCurandTypeError = 103;
constexpr int kCurandInitializationFailed = 203;

struct CurandGenerator {
  int type = 0;
  void* stream = nullptr;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  int ordering = 100;  // CURAND_ORDERING_PSEUDO_DEFAULT
  unsigned dimensions = 1;
};
constinit Objects<CurandGenerator> curand_generators(0xF0);

template <class Value>
int SetOnGenerator(void* generator, Value CurandGenerator::*part, Value value) {
  CurandGenerator* mine = curand_generators.Find(generator);
  if (mine == nullptr) return kCurandNotInitialized;
  mine->*part = value;
  return 0;
}

}  // namespace

int LaunchCurand(void* generator) {
  const CurandGenerator* mine = curand_generators.Find(generator);
  if (mine == nullptr) return kCurandNotInitialized;
  CountLaunch(mine->stream);
  return 0;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

// curandRngType_t: 100 to 161 are pseudo random, 200 to 204 quasi random.
ASHLAR_SURFACE int curandCreateGenerator(void** generator, int type) {
  if (generator == nullptr) return kCurandOutOfRange;
  const bool known = (type >= 100 && type <= 161) || (type >= 200 && type <= 204);
  if (!known) return kCurandTypeError;
  if (cudaFree(nullptr) != 0) return kCurandInitializationFailed;  // it makes the device's context
  *generator = curand_generators.Make(CurandGenerator{type});
  return 0;
}
ASHLAR_SURFACE int curandDestroyGenerator(void* generator) {
  return curand_generators.Destroy(generator) ? 0 : kCurandNotInitialized;
}
ASHLAR_SURFACE int curandSetStream(void* generator, void* stream) {
  return SetOnGenerator(generator, &CurandGenerator::stream, stream);
}
ASHLAR_SURFACE int curandSetPseudoRandomGeneratorSeed(void* generator, unsigned long long seed) {
  return SetOnGenerator(generator, &CurandGenerator::seed, std::uint64_t{seed});
}
ASHLAR_SURFACE int curandSetGeneratorOffset(void* generator, unsigned long long offset) {
  return SetOnGenerator(generator, &CurandGenerator::offset, std::uint64_t{offset});
}
ASHLAR_SURFACE int curandSetGeneratorOrdering(void* generator, int ordering) {
  return SetOnGenerator(generator, &CurandGenerator::ordering, ordering);
}
ASHLAR_SURFACE int curandSetQuasiRandomGeneratorDimensions(void* generator, unsigned dimensions) {
  return SetOnGenerator(generator, &CurandGenerator::dimensions, dimensions);
}
ASHLAR_SURFACE int curandGetProperty(int type, int* value) {
  constexpr int kCurandVersion = 100'305;  // where the program brought none: cuRAND 10.3.5
  return RealProperty("libcurand.so.", "curandGetProperty", kCurandVersion, type, value) ? 0 : kCurandOutOfRange;
}
ASHLAR_SURFACE int curandGetVersion(int* version) {
  if (version == nullptr) return kCurandOutOfRange;
  int part[3] = {};
  for (int type = 0; type < 3; ++type) curandGetProperty(type, &part[type]);
  *version = part[0] * 1000 + part[1] * 100 + part[2];  // CURAND_VERSION
  return 0;
}
