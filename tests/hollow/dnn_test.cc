// cuDNN without a machine below it: descriptors, the graph interface, and the layout of recurrent weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hollow/api/cudnn/rnn.h"
#include "tests/hollow/library_machine.h"

extern "C" {  // as a program declares them

int cudnnCreate(void** handle);
int cudnnDestroy(void* handle);
int cudnnSetStream(void* handle, void* stream);
int cudnnCreateTensorDescriptor(void** tensor);
int cudnnDestroyTensorDescriptor(void* tensor);
int cudnnSetTensor4dDescriptor(void* tensor, int format, int type, int n, int c, int h, int w);
int cudnnGetTensorNdDescriptor(void* tensor, int wanted, int* type, int* dims, int* dim, int* stride);
int cudnnGetTensorSizeInBytes(void* tensor, std::size_t* bytes);
int cudnnCreateFilterDescriptor(void** filter);
int cudnnSetFilterNdDescriptor(void* filter, int type, int format, int dims, const int* dim);
int cudnnCreateConvolutionDescriptor(void** convolution);
int cudnnSetConvolution2dDescriptor(void*, int, int, int, int, int, int, int, int);
int cudnnGetConvolution2dForwardOutputDim(void*, void*, void*, int*, int*, int*, int*);
int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void* handle, int mode, int operation, void*, void*, void*, void*,
                                                      void*, void*, void*, std::size_t* bytes);
int cudnnBackendCreateDescriptor(int kind, void** descriptor);
int cudnnBackendDestroyDescriptor(void* descriptor);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendSetAttribute(void*, int name, int type, std::int64_t count, const void* values);
int cudnnBackendGetAttribute(void*, int name, int type, std::int64_t wanted, std::int64_t* count, void* values);
int cudnnBackendExecute(void* handle, void* plan, void* pack);
int cudnnCreateRNNDescriptor(void** rnn);
int cudnnSetRNNDescriptor_v8(void*, int, int, int, int, int, int, int, int, std::int32_t, std::int32_t, std::int32_t,
                             std::int32_t, void*, std::uint32_t);
int cudnnSetRNNDescriptor_v6(void*, void*, int hidden, int layers, void*, int, int direction, int cell, int, int);
int cudnnGetRNNParamsSize(void*, void*, void* step, std::size_t* bytes, int type);
int cudnnGetRNNTrainingReserveSize(void*, void*, int steps, void* const* x, std::size_t* bytes);
int cudnnGetRNNLinLayerMatrixParams(void*, void*, int, void*, void*, const void*, int, void*, void**);
int cudnnGetFilterNdDescriptor(void*, int, int*, int*, int*, int*);
int cudnnGetRNNWeightSpaceSize(void* handle, void* rnn, std::size_t* bytes);
int cudnnGetRNNWeightParams(void*, void*, std::int32_t, std::size_t, const void*, std::int32_t, void*, void**, void*,
                            void**);

}  // extern "C"

namespace ashlar::hollow {
namespace {

using testing::ElementsAre;

TEST_F(LibrariesTest, CudnnTensorsAnswerWhatTheyWereSetTo) {
  void* tensor = nullptr;
  ASSERT_EQ(cudnnCreateTensorDescriptor(&tensor), 0);
  constexpr int kNhwc = 1;
  constexpr int kHalf = 2;
  ASSERT_EQ(cudnnSetTensor4dDescriptor(tensor, kNhwc, kHalf, 2, 3, 4, 5), 0);
  int type = 0, dims = 0, dim[4] = {}, stride[4] = {};
  ASSERT_EQ(cudnnGetTensorNdDescriptor(tensor, 4, &type, &dims, dim, stride), 0);
  EXPECT_EQ(type, kHalf);
  EXPECT_EQ(dims, 4);
  EXPECT_THAT(dim, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(stride, ElementsAre(60, 1, 15, 3));
  std::size_t bytes = 0;
  EXPECT_EQ(cudnnGetTensorSizeInBytes(tensor, &bytes), 0);
  EXPECT_EQ(bytes, 2u * 3 * 4 * 5 * 2);
  EXPECT_EQ(cudnnSetTensor4dDescriptor(tensor, kNhwc, kHalf, 2, 0, 4, 5), 2000);
  EXPECT_EQ(cudnnDestroyTensorDescriptor(tensor), 0);
  EXPECT_EQ(cudnnGetTensorSizeInBytes(tensor, &bytes), 2000);
}

TEST_F(LibrariesTest, CudnnTellsTheShapeOfAConvolution) {
  void *x = nullptr, *w = nullptr, *convolution = nullptr;
  cudnnCreateTensorDescriptor(&x);
  cudnnCreateFilterDescriptor(&w);
  cudnnCreateConvolutionDescriptor(&convolution);
  cudnnSetTensor4dDescriptor(x, 0, 0, 32, 3, 224, 224);
  const int filter[] = {64, 3, 7, 7};
  ASSERT_EQ(cudnnSetFilterNdDescriptor(w, 0, 0, 4, filter), 0);
  ASSERT_EQ(cudnnSetConvolution2dDescriptor(convolution, 3, 3, 2, 2, 1, 1, 1, 0), 0);
  int n = 0, c = 0, h = 0, width = 0;
  ASSERT_EQ(cudnnGetConvolution2dForwardOutputDim(convolution, x, w, &n, &c, &h, &width), 0);
  EXPECT_THAT((std::vector<int>{n, c, h, width}), ElementsAre(32, 64, 112, 112));  // ResNet's first layer
}

// The graph interface as a front end drives it: operation graph, heuristic, configuration, plan, execution.
struct BackendPart {
  explicit BackendPart(int kind) { EXPECT_EQ(cudnnBackendCreateDescriptor(kind, &descriptor), 0); }
  ~BackendPart() { cudnnBackendDestroyDescriptor(descriptor); }
  BackendPart(const BackendPart&) = delete;
  void Set(int name, void* other) const { EXPECT_EQ(cudnnBackendSetAttribute(descriptor, name, 15, 1, &other), 0); }
  int Finalize() const { return cudnnBackendFinalize(descriptor); }
  void* descriptor = nullptr;
};

TEST_F(LibrariesTest, CudnnsGraphInterfaceLeadsToAPlan) {
  void* handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), 0);
  ASSERT_EQ(cudnnSetStream(handle, StreamOf(5)), 0);
  const BackendPart operation(10), graph(15), heuristic(4), config(3), plan(5), pack(16);
  const float alpha = 1;
  ASSERT_EQ(cudnnBackendSetAttribute(operation.descriptor, 700, 4, 1, &alpha), 0);
  ASSERT_EQ(operation.Finalize(), 0);
  EXPECT_EQ(graph.Finalize(), 2000);  // without operations
  graph.Set(801, operation.descriptor);
  ASSERT_EQ(cudnnBackendSetAttribute(graph.descriptor, 800, 0, 1, &handle), 0);
  ASSERT_EQ(graph.Finalize(), 0);
  heuristic.Set(201, graph.descriptor);
  const int mode = 3;
  ASSERT_EQ(cudnnBackendSetAttribute(heuristic.descriptor, 200, 8, 1, &mode), 0);
  ASSERT_EQ(heuristic.Finalize(), 0);
  std::int64_t count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(heuristic.descriptor, 202, 15, 0, &count, nullptr), 0);
  ASSERT_EQ(count, 1);
  void* configs[] = {config.descriptor};
  ASSERT_EQ(cudnnBackendGetAttribute(heuristic.descriptor, 202, 15, 1, &count, configs), 0);
  const BackendPart engine(2);
  void* engines[] = {engine.descriptor};
  ASSERT_EQ(cudnnBackendGetAttribute(config.descriptor, 300, 15, 1, &count, engines), 0);
  std::int64_t index = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(engine.descriptor, 1301, 3, 1, &count, &index), 0);
  EXPECT_EQ(index, 0);
  EXPECT_EQ(cudnnBackendExecute(handle, plan.descriptor, pack.descriptor), 2000);  // not finalized
  plan.Set(401, config.descriptor);
  ASSERT_EQ(plan.Finalize(), 0);
  EXPECT_THAT(remembered.cudnn_plans, ElementsAre(R"({"mode":3,"graph":{"kind":15,"set":[[801,15,1,)"
                                                  R"([{"kind":10,"set":[[700,4,1,"0000803f"]]}]]]}})"));
  std::int64_t workspace = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(plan.descriptor, 402, 3, 1, &count, &workspace), 0);
  EXPECT_EQ(workspace, 0);
  ASSERT_EQ(pack.Finalize(), 0);
  EXPECT_EQ(cudnnBackendExecute(handle, plan.descriptor, pack.descriptor), 0);
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(5)));
  EXPECT_EQ(cudnnBackendGetAttribute(plan.descriptor, 4321, 3, 1, &count, &workspace), 3000);
  EXPECT_THAT(remembered.refused, ElementsAre("cudnnBackendGetAttribute"));
  EXPECT_EQ(cudnnBackendSetAttribute(plan.descriptor, 401, 15, 1, configs), 1001);  // it is finalized
  cudnnDestroy(handle);
}

// In the place of `ashlar`: it answers each connection with the line that goes with the question's command.
class Answering {
 public:
  using Lines = std::map<std::string, std::string>;
  explicit Answering(Lines lines) : path_(testing::TempDir() + "cudnn_answers"), lines_(std::move(lines)) {
    unlink(path_.c_str());
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    file_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(file_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(file_, 8), 0);
    thread_ = std::thread([this] { Answer(); });
    setenv("ASHLAR_HOLLOW_CUDNN", path_.c_str(), 1);
  }
  ~Answering() {
    unsetenv("ASHLAR_HOLLOW_CUDNN");
    shutdown(file_, SHUT_RDWR);
    thread_.join();
    close(file_);
    unlink(path_.c_str());
  }
  Answering(const Answering&) = delete;

 private:
  void Answer() const {
    for (int other = 0; (other = accept(file_, nullptr, nullptr)) >= 0; close(other)) {
      std::string question;
      char bytes[1000];
      for (ssize_t count = 0; (count = read(other, bytes, sizeof(bytes))) > 0;) {
        question.append(bytes, static_cast<std::size_t>(count));
      }
      for (const auto& [command, line] : lines_) {
        if (question.find("\n" + command + " {\"mode\":0,\"graph\":{\"kind\":15,") == std::string::npos) continue;
        EXPECT_EQ(write(other, line.data(), line.size()), static_cast<ssize_t>(line.size()));
      }
    }
  }

  const std::string path_;
  const Lines lines_;
  int file_ = -1;
  std::thread thread_;
};

// What a heuristic has for a graph of one operation.
struct FoundParts {
  FoundParts() {
    EXPECT_EQ(operation.Finalize(), 0);
    graph.Set(801, operation.descriptor);
    EXPECT_EQ(graph.Finalize(), 0);
    heuristic.Set(201, graph.descriptor);
    EXPECT_EQ(heuristic.Finalize(), 0);
    void* configs[] = {first.descriptor, second.descriptor};
    EXPECT_EQ(cudnnBackendGetAttribute(heuristic.descriptor, 202, 15, 2, &count, configs), 0);
  }
  BackendPart operation{10}, graph{15}, heuristic{4}, first{3}, second{3};
  std::int64_t count = 0;
};

std::int64_t NumberOf(const BackendPart& part, int name) {
  std::int64_t count = 0, out = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(part.descriptor, name, 3, 1, &count, &out), 0);
  return out;
}

TEST_F(LibrariesTest, WhereTheProgramsOwnCudnnIsAskedPlansHaveWhatItNames) {
  const Answering ashlar(
      Answering::Lines{{"configs", "* 1:7:500:1.12:3 4:8:70016::\n"}, {"plan:1", "-\n"}, {"plan:4", "= 70016\n"}});
  const FoundParts found;
  EXPECT_EQ(found.count, 2);
  std::int64_t one = 0;
  void* configs[] = {found.first.descriptor};
  ASSERT_EQ(cudnnBackendGetAttribute(found.heuristic.descriptor, 202, 15, 1, &one, configs), 0);
  EXPECT_EQ(one, 1) << "PyTorch wants one, and would take more for descriptors that it made";
  EXPECT_EQ(NumberOf(found.first, 303), 500);
  EXPECT_EQ(NumberOf(found.second, 303), 70016);
  const BackendPart engine(2);
  void* engines[] = {engine.descriptor};
  std::int64_t count = 0;
  std::int32_t notes[4] = {};
  ASSERT_EQ(cudnnBackendGetAttribute(found.first.descriptor, 300, 15, 1, &count, engines), 0);
  EXPECT_EQ(NumberOf(engine, 1301), 7);
  ASSERT_EQ(cudnnBackendGetAttribute(engine.descriptor, 1303, 11, 4, &count, notes), 0);
  EXPECT_THAT(std::vector<std::int32_t>(notes, notes + count), ElementsAre(1, 12));
  ASSERT_EQ(cudnnBackendGetAttribute(engine.descriptor, 1305, 19, 4, &count, notes), 0);
  EXPECT_THAT(std::vector<std::int32_t>(notes, notes + count), ElementsAre(3));
  const BackendPart none(5), plan(5);
  none.Set(401, found.first.descriptor);
  EXPECT_EQ(none.Finalize(), 3000) << "the library makes no plan of it";
  plan.Set(401, found.second.descriptor);
  ASSERT_EQ(plan.Finalize(), 0);
  EXPECT_EQ(NumberOf(plan, 402), 70016);
  EXPECT_THAT(remembered.cudnn_workspaces, ElementsAre(70016));
  EXPECT_TRUE(remembered.cudnn_silences.empty());
}

TEST_F(LibrariesTest, WhereItHasNoAnswerPlansAreAsWithoutIt) {
  const auto plan_of_first = [] {
    const FoundParts found;
    EXPECT_EQ(found.count, 1);
    const BackendPart plan(5);
    plan.Set(401, found.first.descriptor);
    EXPECT_EQ(plan.Finalize(), 0);
    return NumberOf(plan, 402);
  };
  {
    const Answering ashlar(Answering::Lines{{"configs", "? 92400 its library took too long\n"}});
    EXPECT_EQ(plan_of_first(), 0);
  }
  {
    const Answering ashlar(
        Answering::Lines{{"configs", "* 0:7:500::\n"}, {"plan:0", "? 92400 its library ended its process\n"}});
    EXPECT_EQ(plan_of_first(), 0);
  }
  setenv("ASHLAR_HOLLOW_CUDNN", "/none/cudnn", 1);
  EXPECT_EQ(plan_of_first(), 0);
  unsetenv("ASHLAR_HOLLOW_CUDNN");
  EXPECT_THAT(remembered.cudnn_silences,
              ElementsAre("its library took too long", "its library ended its process", "ashlar did not answer"));
  EXPECT_THAT(remembered.cudnn_workspaces, ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

// A plan that is made of its own text has a configuration as well: JAX asks for it.
TEST_F(LibrariesTest, APlanOfATextHasAConfiguration) {
  const BackendPart plan(5), config(3), other(4);
  const char text[] = "{}";
  ASSERT_EQ(cudnnBackendSetAttribute(plan.descriptor, 405, 24, 2, text), 0);
  ASSERT_EQ(plan.Finalize(), 0);
  std::int64_t count = 0, index = -1;
  void* configs[] = {config.descriptor};
  ASSERT_EQ(cudnnBackendGetAttribute(plan.descriptor, 401, 15, 1, &count, configs), 0);
  EXPECT_EQ(count, 1);
  const BackendPart engine(2);
  void* engines[] = {engine.descriptor};
  ASSERT_EQ(cudnnBackendGetAttribute(config.descriptor, 300, 15, 1, &count, engines), 0);
  EXPECT_EQ(cudnnBackendGetAttribute(engine.descriptor, 1301, 3, 1, &count, &index), 0);
  EXPECT_EQ(index, 0);
  configs[0] = other.descriptor;
  EXPECT_NE(cudnnBackendGetAttribute(plan.descriptor, 401, 15, 1, &count, configs), 0) << "no place for one";
}

TEST_F(LibrariesTest, TheWeightsOfARecurrentNetworkLieWithoutGapsOrOverlaps) {
  void *handle = nullptr, *rnn = nullptr, *matrix = nullptr, *bias = nullptr;
  cudnnCreate(&handle);
  cudnnCreateRNNDescriptor(&rnn);
  cudnnCreateTensorDescriptor(&matrix);
  cudnnCreateTensorDescriptor(&bias);
  for (const int cell : {0, kLstm, kGru}) {
    for (const int projection : {0, 6}) {
      if (projection != 0 && cell != kLstm) continue;
      ASSERT_EQ(cudnnSetRNNDescriptor_v8(rnn, 0, cell, 2, 1, 0, 0, 0, 0, 10, 16, projection, 2, nullptr, 0), 0);
      std::size_t bytes = 0;
      ASSERT_EQ(cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes), 0);
      std::vector<char> space(bytes, 0);
      const int gates = cell == kLstm ? 4 : cell == kGru ? 3 : 1;
      for (int layer = 0; layer < 4; ++layer) {
        for (int which = 0; which < 2 * gates + (projection != 0 ? 1 : 0); ++which) {
          void *matrix_at = nullptr, *bias_at = nullptr;
          ASSERT_EQ(cudnnGetRNNWeightParams(handle, rnn, layer, bytes, space.data(), which, matrix, &matrix_at, bias,
                                            &bias_at),
                    0);
          for (const auto& [part, at] : {std::pair{matrix, matrix_at}, std::pair{bias, bias_at}}) {
            if (at == nullptr) continue;
            std::size_t size = 0;
            ASSERT_EQ(cudnnGetTensorSizeInBytes(part, &size), 0);
            auto* first = static_cast<char*>(at);
            ASSERT_GE(first, space.data());
            ASSERT_LE(first + size, space.data() + bytes);
            for (char* byte = first; byte < first + size; ++byte) ++*byte;
          }
        }
      }
      EXPECT_EQ(std::count(space.begin(), space.end(), 1), static_cast<std::ptrdiff_t>(bytes)) << cell;
    }
  }
  // PyTorch's own count for torch.nn.LSTM(10, 16, 2, bidirectional=True): sum(p.numel() for p in parameters()).
  ASSERT_EQ(cudnnSetRNNDescriptor_v8(rnn, 0, kLstm, 2, 1, 0, 0, 0, 0, 10, 16, 0, 2, nullptr, 0), 0);
  std::size_t bytes = 0;
  ASSERT_EQ(cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes), 0);
  EXPECT_EQ(bytes, 9'984u * 4);
}

TEST_F(LibrariesTest, BothInterfacesOfRecurrentNetworksLayTheWeightsAlike) {
  void *handle = nullptr, *rnn = nullptr, *older = nullptr, *step = nullptr, *tensor = nullptr, *filter = nullptr;
  cudnnCreate(&handle);
  cudnnCreateRNNDescriptor(&rnn);
  cudnnCreateRNNDescriptor(&older);
  cudnnCreateTensorDescriptor(&step);
  cudnnCreateTensorDescriptor(&tensor);
  cudnnCreateFilterDescriptor(&filter);
  void* weights = nullptr;
  cudnnCreateFilterDescriptor(&weights);
  ASSERT_EQ(cudnnSetTensor4dDescriptor(step, 0, 0, 3, 10, 1, 1), 0);  // 3 samples of 10
  ASSERT_EQ(cudnnSetRNNDescriptor_v8(rnn, 0, kGru, 2, 1, 0, 0, 0, 0, 10, 16, 0, 2, nullptr, 0), 0);
  ASSERT_EQ(cudnnSetRNNDescriptor_v6(handle, older, 16, 2, nullptr, 0, 1, kGru, 0, 0), 0);
  std::size_t bytes = 0, older_bytes = 1;
  ASSERT_EQ(cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes), 0);
  ASSERT_EQ(cudnnGetRNNParamsSize(handle, older, step, &older_bytes, 0), 0);
  EXPECT_EQ(older_bytes, bytes);
  const int all[] = {static_cast<int>(bytes / 4), 1, 1};
  ASSERT_EQ(cudnnSetFilterNdDescriptor(weights, 0, 0, 3, all), 0);
  const std::vector<char> space(bytes);
  for (int layer = 0; layer < 4; ++layer) {
    for (int which = 0; which < 6; ++which) {
      void *at = nullptr, *older_at = nullptr;
      ASSERT_EQ(cudnnGetRNNWeightParams(handle, rnn, layer, bytes, space.data(), which, tensor, &at, nullptr, nullptr),
                0);
      ASSERT_EQ(
          cudnnGetRNNLinLayerMatrixParams(handle, older, layer, step, weights, space.data(), which, filter, &older_at),
          0);
      EXPECT_EQ(older_at, at);
      int dim[3] = {}, older_dim[3] = {};
      cudnnGetTensorNdDescriptor(tensor, 3, nullptr, nullptr, dim, nullptr);
      cudnnGetFilterNdDescriptor(filter, 3, nullptr, nullptr, nullptr, older_dim);
      EXPECT_TRUE(std::equal(dim, dim + 3, older_dim));
    }
  }
  void* const steps[] = {step, step, step, step, step};
  std::size_t one = 0, five = 0;
  EXPECT_EQ(cudnnGetRNNTrainingReserveSize(handle, older, 1, steps, &one), 0);
  EXPECT_EQ(cudnnGetRNNTrainingReserveSize(handle, older, 5, steps, &five), 0);
  EXPECT_EQ(five, 5 * one);
  EXPECT_GT(one, 0u);
}

}  // namespace
}  // namespace ashlar::hollow
