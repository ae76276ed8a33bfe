#include "hollow/api/cuda/device_properties.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace ashlar::hollow {
namespace {

constexpr int kLastAttribute = 147;  // of cuda.h of CUDA 13.0

// What all devices answer alike, by CU_DEVICE_ATTRIBUTE's number. Source: the CUDA C++ Programming Guide's "Technical
// Specifications per Compute Capability" and deviceQuery of an A100 (limits of textures and surfaces). What is not here
// is 0: the device has no such feature.
constexpr std::pair<int, int> kCommon[] = {
    {1, 1024},         // MAX_THREADS_PER_BLOCK
    {2, 1024},         // MAX_BLOCK_DIM_X
    {3, 1024},         // MAX_BLOCK_DIM_Y
    {4, 64},           // MAX_BLOCK_DIM_Z
    {5, 2147483647},   // MAX_GRID_DIM_X
    {6, 65535},        // MAX_GRID_DIM_Y
    {7, 65535},        // MAX_GRID_DIM_Z
    {8, 49152},        // MAX_SHARED_MEMORY_PER_BLOCK
    {9, 65536},        // TOTAL_CONSTANT_MEMORY
    {10, 32},          // WARP_SIZE
    {11, 2147483647},  // MAX_PITCH
    {12, 65536},       // MAX_REGISTERS_PER_BLOCK
    {14, 512},         // TEXTURE_ALIGNMENT
    {15, 1},           // GPU_OVERLAP
    {19, 1},           // CAN_MAP_HOST_MEMORY
    {21, 131072},      // MAXIMUM_TEXTURE1D_WIDTH
    {22, 131072},      // MAXIMUM_TEXTURE2D_WIDTH
    {23, 65536},       // MAXIMUM_TEXTURE2D_HEIGHT
    {24, 16384},       // MAXIMUM_TEXTURE3D_WIDTH
    {25, 16384},       // MAXIMUM_TEXTURE3D_HEIGHT
    {26, 16384},       // MAXIMUM_TEXTURE3D_DEPTH
    {27, 32768},       // MAXIMUM_TEXTURE2D_LAYERED_WIDTH
    {28, 32768},       // MAXIMUM_TEXTURE2D_LAYERED_HEIGHT
    {29, 2048},        // MAXIMUM_TEXTURE2D_LAYERED_LAYERS
    {30, 512},         // SURFACE_ALIGNMENT
    {31, 1},           // CONCURRENT_KERNELS
    {40, 3},           // ASYNC_ENGINE_COUNT
    {41, 1},           // UNIFIED_ADDRESSING
    {42, 32768},       // MAXIMUM_TEXTURE1D_LAYERED_WIDTH
    {43, 2048},        // MAXIMUM_TEXTURE1D_LAYERED_LAYERS
    {45, 32768},       // MAXIMUM_TEXTURE2D_GATHER_WIDTH
    {46, 32768},       // MAXIMUM_TEXTURE2D_GATHER_HEIGHT
    {47, 8192},        // MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE
    {48, 8192},        // MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE
    {49, 32768},       // MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE
    {51, 32},          // TEXTURE_PITCH_ALIGNMENT
    {52, 32768},       // MAXIMUM_TEXTURECUBEMAP_WIDTH
    {53, 32768},       // MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH
    {54, 2046},        // MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS
    {55, 32768},       // MAXIMUM_SURFACE1D_WIDTH
    {56, 131072},      // MAXIMUM_SURFACE2D_WIDTH
    {57, 65536},       // MAXIMUM_SURFACE2D_HEIGHT
    {58, 16384},       // MAXIMUM_SURFACE3D_WIDTH
    {59, 16384},       // MAXIMUM_SURFACE3D_HEIGHT
    {60, 16384},       // MAXIMUM_SURFACE3D_DEPTH
    {61, 32768},       // MAXIMUM_SURFACE1D_LAYERED_WIDTH
    {62, 2048},        // MAXIMUM_SURFACE1D_LAYERED_LAYERS
    {63, 32768},       // MAXIMUM_SURFACE2D_LAYERED_WIDTH
    {64, 32768},       // MAXIMUM_SURFACE2D_LAYERED_HEIGHT
    {65, 2048},        // MAXIMUM_SURFACE2D_LAYERED_LAYERS
    {66, 32768},       // MAXIMUM_SURFACECUBEMAP_WIDTH
    {67, 32768},       // MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH
    {68, 2046},        // MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS
    {69, 268435456},   // MAXIMUM_TEXTURE1D_LINEAR_WIDTH
    {70, 131072},      // MAXIMUM_TEXTURE2D_LINEAR_WIDTH
    {71, 65000},       // MAXIMUM_TEXTURE2D_LINEAR_HEIGHT
    {72, 2097120},     // MAXIMUM_TEXTURE2D_LINEAR_PITCH
    {73, 32768},       // MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH
    {74, 32768},       // MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT
    {77, 32768},       // MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH
    {78, 1},           // STREAM_PRIORITIES_SUPPORTED
    {79, 1},           // GLOBAL_L1_CACHE_SUPPORTED
    {80, 1},           // LOCAL_L1_CACHE_SUPPORTED
    {82, 65536},       // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 1},           // MANAGED_MEMORY
    {87, 2},           // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    {89, 1},           // CONCURRENT_MANAGED_ACCESS
    {90, 1},           // COMPUTE_PREEMPTION_SUPPORTED
    {91, 1},           // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    {95, 1},           // COOPERATIVE_LAUNCH
    {99, 1},           // HOST_REGISTER_SUPPORTED
    {102, 1},          // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    {103, 1},          // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    {106, 32},         // MAX_BLOCKS_PER_MULTIPROCESSOR
    {109, 134213632},  // MAX_ACCESS_POLICY_WINDOW_SIZE
    {111, 1024},       // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},          // MEMORY_POOLS_SUPPORTED
    {125, 1},          // IPC_EVENT_SUPPORTED
    {129, 1},          // UNIFIED_FUNCTION_POINTERS
    {131, -1},         // NUMA_ID
    {134, -1},         // HOST_NUMA_ID
};

// Where cudaDeviceProp of CUDA 11.8, 12.4 and 13.0 holds an attribute, and in how many bytes; -1: not at all.
struct PropField {
  int attribute;
  int bytes;
  int offsets[3];
};
constexpr PropField kFields[] = {
    {8, 8, {296, 296, 296}},    // sharedMemPerBlock
    {12, 4, {304, 304, 304}},   // regsPerBlock
    {10, 4, {308, 308, 308}},   // warpSize
    {11, 8, {312, 312, 312}},   // memPitch
    {1, 4, {320, 320, 320}},    // maxThreadsPerBlock
    {2, 4, {324, 324, 324}},    // maxThreadsDim
    {3, 4, {328, 328, 328}},    // maxThreadsDim
    {4, 4, {332, 332, 332}},    // maxThreadsDim
    {5, 4, {336, 336, 336}},    // maxGridSize
    {6, 4, {340, 340, 340}},    // maxGridSize
    {7, 4, {344, 344, 344}},    // maxGridSize
    {13, 4, {348, 348, -1}},    // clockRate
    {9, 8, {352, 352, 352}},    // totalConstMem
    {75, 4, {360, 360, 360}},   // major
    {76, 4, {364, 364, 364}},   // minor
    {14, 8, {368, 368, 368}},   // textureAlignment
    {51, 8, {376, 376, 376}},   // texturePitchAlignment
    {15, 4, {384, 384, -1}},    // deviceOverlap
    {16, 4, {388, 388, 384}},   // multiProcessorCount
    {17, 4, {392, 392, -1}},    // kernelExecTimeoutEnabled
    {18, 4, {396, 396, 388}},   // integrated
    {19, 4, {400, 400, 392}},   // canMapHostMemory
    {20, 4, {404, 404, -1}},    // computeMode
    {21, 4, {408, 408, 396}},   // maxTexture1D
    {77, 4, {412, 412, 400}},   // maxTexture1DMipmap
    {69, 4, {416, 416, -1}},    // maxTexture1DLinear
    {22, 4, {420, 420, 404}},   // maxTexture2D
    {23, 4, {424, 424, 408}},   // maxTexture2D
    {73, 4, {428, 428, 412}},   // maxTexture2DMipmap
    {74, 4, {432, 432, 416}},   // maxTexture2DMipmap
    {70, 4, {436, 436, 420}},   // maxTexture2DLinear
    {71, 4, {440, 440, 424}},   // maxTexture2DLinear
    {72, 4, {444, 444, 428}},   // maxTexture2DLinear
    {45, 4, {448, 448, 432}},   // maxTexture2DGather
    {46, 4, {452, 452, 436}},   // maxTexture2DGather
    {24, 4, {456, 456, 440}},   // maxTexture3D
    {25, 4, {460, 460, 444}},   // maxTexture3D
    {26, 4, {464, 464, 448}},   // maxTexture3D
    {47, 4, {468, 468, 452}},   // maxTexture3DAlt
    {48, 4, {472, 472, 456}},   // maxTexture3DAlt
    {49, 4, {476, 476, 460}},   // maxTexture3DAlt
    {52, 4, {480, 480, 464}},   // maxTextureCubemap
    {42, 4, {484, 484, 468}},   // maxTexture1DLayered
    {43, 4, {488, 488, 472}},   // maxTexture1DLayered
    {27, 4, {492, 492, 476}},   // maxTexture2DLayered
    {28, 4, {496, 496, 480}},   // maxTexture2DLayered
    {29, 4, {500, 500, 484}},   // maxTexture2DLayered
    {53, 4, {504, 504, 488}},   // maxTextureCubemapLayered
    {54, 4, {508, 508, 492}},   // maxTextureCubemapLayered
    {55, 4, {512, 512, 496}},   // maxSurface1D
    {56, 4, {516, 516, 500}},   // maxSurface2D
    {57, 4, {520, 520, 504}},   // maxSurface2D
    {58, 4, {524, 524, 508}},   // maxSurface3D
    {59, 4, {528, 528, 512}},   // maxSurface3D
    {60, 4, {532, 532, 516}},   // maxSurface3D
    {61, 4, {536, 536, 520}},   // maxSurface1DLayered
    {62, 4, {540, 540, 524}},   // maxSurface1DLayered
    {63, 4, {544, 544, 528}},   // maxSurface2DLayered
    {64, 4, {548, 548, 532}},   // maxSurface2DLayered
    {65, 4, {552, 552, 536}},   // maxSurface2DLayered
    {66, 4, {556, 556, 540}},   // maxSurfaceCubemap
    {67, 4, {560, 560, 544}},   // maxSurfaceCubemapLayered
    {68, 4, {564, 564, 548}},   // maxSurfaceCubemapLayered
    {30, 8, {568, 568, 552}},   // surfaceAlignment
    {31, 4, {576, 576, 560}},   // concurrentKernels
    {32, 4, {580, 580, 564}},   // ECCEnabled
    {33, 4, {584, 584, 568}},   // pciBusID
    {34, 4, {588, 588, 572}},   // pciDeviceID
    {50, 4, {592, 592, 576}},   // pciDomainID
    {35, 4, {596, 596, 580}},   // tccDriver
    {40, 4, {600, 600, 584}},   // asyncEngineCount
    {41, 4, {604, 604, 588}},   // unifiedAddressing
    {36, 4, {608, 608, -1}},    // memoryClockRate
    {37, 4, {612, 612, 592}},   // memoryBusWidth
    {38, 4, {616, 616, 596}},   // l2CacheSize
    {108, 4, {620, 620, 600}},  // persistingL2CacheMaxSize
    {39, 4, {624, 624, 604}},   // maxThreadsPerMultiProcessor
    {78, 4, {628, 628, 608}},   // streamPrioritiesSupported
    {79, 4, {632, 632, 612}},   // globalL1CacheSupported
    {80, 4, {636, 636, 616}},   // localL1CacheSupported
    {81, 8, {640, 640, 624}},   // sharedMemPerMultiprocessor
    {82, 4, {648, 648, 632}},   // regsPerMultiprocessor
    {83, 4, {652, 652, 636}},   // managedMemory
    {84, 4, {656, 656, 640}},   // isMultiGpuBoard
    {85, 4, {660, 660, 644}},   // multiGpuBoardGroupID
    {86, 4, {664, 664, 648}},   // hostNativeAtomicSupported
    {87, 4, {668, 668, -1}},    // singleToDoublePrecisionPerfRatio
    {88, 4, {672, 672, 652}},   // pageableMemoryAccess
    {89, 4, {676, 676, 656}},   // concurrentManagedAccess
    {90, 4, {680, 680, 660}},   // computePreemptionSupported
    {91, 4, {684, 684, 664}},   // canUseHostPointerForRegisteredMem
    {95, 4, {688, 688, 668}},   // cooperativeLaunch
    {96, 4, {692, 692, -1}},    // cooperativeMultiDeviceLaunch
    {97, 8, {696, 696, 672}},   // sharedMemPerBlockOptin
    {100, 4, {704, 704, 680}},  // pageableMemoryAccessUsesHostPageTables
    {101, 4, {708, 708, 684}},  // directManagedMemAccessFromHost
    {106, 4, {712, 712, 688}},  // maxBlocksPerMultiProcessor
    {109, 4, {716, 716, 692}},  // accessPolicyMaxWindowSize
    {111, 8, {720, 720, 696}},  // reservedSharedMemPerBlock
    {99, 4, {-1, 728, 704}},    // hostRegisterSupported
    {112, 4, {-1, 732, 708}},   // sparseCudaArraySupported
    {113, 4, {-1, 736, 712}},   // hostRegisterReadOnlySupported
    {114, 4, {-1, 740, 716}},   // timelineSemaphoreInteropSupported
    {115, 4, {-1, 744, 720}},   // memoryPoolsSupported
    {116, 4, {-1, 748, 724}},   // gpuDirectRDMASupported
    {117, 4, {-1, 752, 728}},   // gpuDirectRDMAFlushWritesOptions
    {118, 4, {-1, 756, 732}},   // gpuDirectRDMAWritesOrdering
    {119, 4, {-1, 760, 736}},   // memoryPoolSupportedHandleTypes
    {121, 4, {-1, 764, 740}},   // deferredMappingCudaArraySupported
    {125, 4, {-1, 768, 744}},   // ipcEventSupported
    {120, 4, {-1, 772, 748}},   // clusterLaunch
    {129, 4, {-1, 776, 752}},   // unifiedFunctionPointers
    {130, 4, {-1, -1, 756}},    // deviceNumaConfig
    {131, 4, {-1, -1, 760}},    // deviceNumaId
    {133, 4, {-1, -1, 764}},    // mpsEnabled
    {134, 4, {-1, -1, 768}},    // hostNumaId
    {139, 4, {-1, -1, 772}},    // gpuPciDeviceID
    {140, 4, {-1, -1, 776}},    // gpuPciSubsystemID
    {143, 4, {-1, -1, 780}},    // hostNumaMultinodeIpcSupported
};
constexpr std::size_t kPropBytes[] = {728, 1032, 1008};
constexpr std::size_t kUuidOffset = 256;
constexpr std::size_t kTotalOffset = 288;

// Shared memory that a block can be given without asking, and registers: as all devices since Maxwell.
std::optional<int> OwnAttribute(const Settings& s, int attribute, int device) {
  switch (attribute) {
    case 13:
      return s.clock_khz;
    case 16:
      return s.sm_count;
    case 33:
      return PciBus(device);
    case 36:
      return s.memory_clock_khz;
    case 37:
      return s.memory_bus_bits;
    case 38:
      return static_cast<int>(s.l2_bytes);
    case 39:
      return s.threads_per_sm;
    case 75:
      return s.compute_major;
    case 76:
      return s.compute_minor;
    case 81:
      return static_cast<int>(s.shared_per_sm);
    case 97:
      return static_cast<int>(s.shared_per_block_optin);
    case 106:
      return s.threads_per_sm >= 2048 ? 32 : 16;
    case 108:
      return s.compute_major >= 8 ? static_cast<int>(s.l2_bytes / 4 * 3) : 0;
    case 111:
      return s.compute_major >= 8 ? 1024 : 0;
    case 120:
      return s.compute_major >= 9 ? 1 : 0;  // CLUSTER_LAUNCH
    case 127:
      return s.compute_major >= 9 ? 1 : 0;  // TENSOR_MAP_ACCESS_SUPPORTED
    case 119:
      return 1;  // MEMPOOL_SUPPORTED_HANDLE_TYPES: POSIX file descriptors
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int> DeviceAttribute(const Settings& settings, int attribute, int device) {
  if (attribute < 1 || attribute > kLastAttribute) return std::nullopt;
  if (const std::optional<int> own = OwnAttribute(settings, attribute, device); own.has_value()) return own;
  const auto* const row =
      std::find_if(std::begin(kCommon), std::end(kCommon), [&](const auto& entry) { return entry.first == attribute; });
  return row == std::end(kCommon) ? 0 : row->second;
}

abi::Uuid DeviceUuid(int device) {
  abi::Uuid out = {};
  std::memcpy(out.bytes, "ashlar hollow", 13);
  out.bytes[15] = static_cast<unsigned char>(device);
  return out;
}

int PciBus(int device) { return device + 1; }

void FillDeviceProp(const Settings& settings, int device, int major, void* prop) {
  const int layout = std::clamp(major, 11, 13) - 11;
  auto* bytes = static_cast<unsigned char*>(prop);
  std::memset(bytes, 0, kPropBytes[layout]);
  std::memcpy(bytes, settings.name.c_str(), std::min<std::size_t>(settings.name.size(), 255));
  const abi::Uuid uuid = DeviceUuid(device);
  std::memcpy(bytes + kUuidOffset, &uuid, sizeof(uuid));
  std::memcpy(bytes + kTotalOffset, &settings.total_bytes, sizeof(settings.total_bytes));
  for (const PropField& field : kFields) {
    if (field.offsets[layout] < 0) continue;
    const std::int64_t value = DeviceAttribute(settings, field.attribute, device).value_or(0);
    std::memcpy(bytes + field.offsets[layout], &value, static_cast<std::size_t>(field.bytes));
  }
}

}  // namespace ashlar::hollow
