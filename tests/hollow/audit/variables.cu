// Variables of device code, an array, a graph, a cooperative launch: what a program reads back of each, in one line.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>

__device__ int counted = 9;
__constant__ float weights[4] = {1, 2, 3, 4};
__managed__ int managed = 7;

__global__ void Work(int* out) {
  out[threadIdx.x] = counted + static_cast<int>(weights[0]) + managed;
  cooperative_groups::this_grid().sync();
}

int main() {
  int value = 0;
  float third = 0;
  cudaMemcpyFromSymbol(&value, counted, sizeof(value));
  cudaMemcpyFromSymbol(&third, weights, sizeof(third), 2 * sizeof(float));
  void* address = nullptr;
  const int other = 11;
  int read = 0;
  cudaGetSymbolAddress(&address, counted);
  cudaMemcpy(address, &other, sizeof(other), cudaMemcpyHostToDevice);
  cudaMemcpyFromSymbol(&read, counted, sizeof(read));

  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  const float row[] = {1, 2, 3, 4};
  float back[4] = {};
  cudaMallocArray(&array, &format, 4, 1);
  cudaMemcpy2DToArray(array, 0, 0, row, sizeof(row), sizeof(row), 1, cudaMemcpyHostToDevice);
  cudaMemcpy2DFromArray(back, sizeof(row), array, 0, 0, sizeof(row), 1, cudaMemcpyDeviceToHost);

  int* out = nullptr;
  cudaMallocAsync(&out, 1 << 20, nullptr);
  void* arguments[] = {&out};
  const cudaError_t launched = cudaLaunchCooperativeKernel(Work, dim3(1), dim3(32), arguments, 0, nullptr);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  Work<<<1, 32, 0, stream>>>(out);
  cudaMemsetAsync(out, 0, 128, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  const cudaError_t replayed = cudaGraphLaunch(exec, stream);
  cudaFreeAsync(out, stream);
  cudaFreeArray(array);
  std::printf("%d %g %d %d %g %d %d %s\n", value, third, managed, read, back[2], launched, replayed,
              cudaGetErrorString(cudaDeviceSynchronize()));
}
