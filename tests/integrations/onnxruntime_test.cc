#include "ashlar/onnxruntime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using testing::HasSubstr;

// What the functions do on a GPU: clients/onnxruntime_addresses.cc.
TEST(OnnxRuntimeTest, ADeviceThatIsNoneIsRefused) {
  ashlar_onnxruntime_functions functions = {sizeof(functions), nullptr, nullptr, nullptr};
  EXPECT_EQ(ashlar_onnxruntime(-1, &functions), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("device -1 is none of 0 to 15"));
  EXPECT_EQ(ashlar_onnxruntime(16, &functions), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(functions.alloc, nullptr);
}

}  // namespace
