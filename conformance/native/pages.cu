// The driver's virtual memory: reserves addresses, then grows into them page by page, and shrinks again.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s answered %d\n", what, static_cast<int>(result));
  std::exit(1);
}

static CUmemGenericAllocationHandle Grow(CUdeviceptr at, std::size_t bytes, const CUmemAllocationProp& prop) {
  CUmemGenericAllocationHandle handle = 0;
  Check(cuMemCreate(&handle, bytes, &prop, 0), "cuMemCreate");
  Check(cuMemMap(at, bytes, 0, handle, 0), "cuMemMap");
  return handle;
}

int main() {
  CUcontext context;
  Check(cuInit(0), "cuInit");
  Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t page = 0;
  Check(cuMemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "granularity");
  CUdeviceptr base = 0;
  Check(cuMemAddressReserve(&base, 64 * page, 0, 0, 0), "cuMemAddressReserve");
  for (int i = 0; i < 8; ++i) Check(cuMemRelease(Grow(base + i * page, page, prop)), "cuMemRelease");
  Check(cuMemUnmap(base + 4 * page, 4 * page), "cuMemUnmap");
  std::printf("peak %zu held %zu\n", 8 * page, 4 * page);
}
