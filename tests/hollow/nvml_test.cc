// NVML over a machine of two devices.
#include "hollow/api/nvml/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/hollow/library_machine.h"

extern "C" {  // as a program declares them

int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetCount_v2(unsigned*);
int nvmlDeviceGetHandleByIndex_v2(unsigned, void**);
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void**);
int nvmlDeviceGetHandleByUUID(const char*, void**);
int nvmlDeviceGetUUID(void*, char*, unsigned);
int nvmlDeviceGetName(void*, char*, unsigned);
int nvmlDeviceGetPciInfo_v3(void*, ashlar::hollow::NvmlPci*);
int nvmlDeviceGetPciInfoExt(void*, ashlar::hollow::NvmlPciExt*);
int nvmlDeviceGetIndex(void*, unsigned*);
int nvmlDeviceGetMemoryInfo(void*, ashlar::hollow::NvmlMemory*);
int nvmlDeviceGetMemoryInfo_v2(void*, ashlar::hollow::NvmlMemory2*);
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned*, ashlar::hollow::NvmlProcess1*);
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned*, ashlar::hollow::NvmlProcess2*);
int nvmlDeviceGetP2PStatus(void*, void*, int, int*);
int nvmlDeviceGetTemperature(void*, int, unsigned*);
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned*);
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned*);
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned*);
int nvmlDeviceGetNvLinkState(void*, unsigned, int*);

}  // extern "C"

namespace ashlar::hollow {
namespace {

using testing::ElementsAre;

class NvmlTest : public LibrariesTest {
 protected:
  void SetUp() override {
    LibrariesTest::SetUp();
    ASSERT_EQ(nvmlInit_v2(), 0);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &first_), 0);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &second_), 0);
  }
  void TearDown() override { EXPECT_EQ(nvmlShutdown(), 0); }
  void* first_ = nullptr;
  void* second_ = nullptr;
};

TEST_F(LibrariesTest, NvmlIsInitialisedFirst) {
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), 1);
  EXPECT_EQ(nvmlShutdown(), 1);
}

TEST_F(NvmlTest, ADeviceIsFoundByItsNames) {
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), 0);
  EXPECT_EQ(count, 2u);
  void* found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &found), 2);
  NvmlPci pci = {};
  ASSERT_EQ(nvmlDeviceGetPciInfo_v3(second_, &pci), 0);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &found), 0);
  EXPECT_EQ(found, second_);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id_legacy, &found), 0);
  EXPECT_EQ(found, second_);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:FE:00.0", &found), 6);
  NvmlPciExt extended = {};
  EXPECT_EQ(nvmlDeviceGetPciInfoExt(second_, &extended), 25);
  extended.version = NvmlVersion<NvmlPciExt>(1);
  ASSERT_EQ(nvmlDeviceGetPciInfoExt(second_, &extended), 0);
  EXPECT_STREQ(extended.bus_id, pci.bus_id);
  EXPECT_EQ(extended.bus, pci.bus);
  char uuid[96] = {};
  ASSERT_EQ(nvmlDeviceGetUUID(second_, uuid, sizeof(uuid)), 0);
  EXPECT_EQ(std::string(uuid).size(), 40u);  // GPU-, 32 digits, 4 dashes
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(uuid, &found), 0);
  EXPECT_EQ(found, second_);
  unsigned index = 9;
  EXPECT_EQ(nvmlDeviceGetIndex(second_, &index), 0);
  EXPECT_EQ(index, 1u);
  char name[8] = {};
  EXPECT_EQ(nvmlDeviceGetName(first_, name, sizeof(name)), 7);  // too short
  EXPECT_EQ(nvmlDeviceGetIndex(&index, &index), 2);
  EXPECT_EQ(nvmlDeviceGetIndex(nullptr, &index), 2);
}

TEST_F(NvmlTest, MemoryAndProcessesAreThoseOfTheAccounting) {
  NvmlMemory memory = {};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(first_, &memory), 0);
  EXPECT_EQ(memory.total, simple_machine.total_bytes);
  EXPECT_EQ(memory.used, 5u << 20);
  EXPECT_EQ(memory.free, simple_machine.total_bytes - (5u << 20));
  NvmlMemory2 versioned = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(first_, &versioned), 25);
  versioned.version = NvmlVersion<NvmlMemory2>(2);
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(first_, &versioned), 0);
  EXPECT_EQ(versioned.used, 5u << 20);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first_, &count, nullptr), 7);
  EXPECT_EQ(count, 2u);
  std::vector<NvmlProcess2> processes(count);
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first_, &count, processes.data()), 0);
  EXPECT_EQ(processes[0].pid, 101u);
  EXPECT_EQ(processes[1].used_bytes, 2u << 20);
  std::vector<NvmlProcess1> older(count);
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(first_, &count, older.data()), 0);
  EXPECT_EQ(older[1].pid, 102u);
  EXPECT_EQ(older[1].used_bytes, 2u << 20);
  count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(second_, &count, nullptr), 0);
  EXPECT_EQ(count, 0u);
}

TEST_F(NvmlTest, WhatOnlyADeviceMeasuresIsNotSupported) {
  unsigned degrees = 77;
  EXPECT_EQ(nvmlDeviceGetTemperature(first_, 0, &degrees), 3);
  EXPECT_EQ(degrees, 77u);
  EXPECT_THAT(remembered.refused, ElementsAre("nvmlDeviceGetTemperature"));
  int reach = -1;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(first_, second_, 0, &reach), 0);
  EXPECT_EQ(reach, 0);
  constexpr int kOverNvlink = 2;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(first_, second_, kOverNvlink, &reach), 0);
  EXPECT_NE(reach, 0);
}

TEST_F(NvmlTest, LinksArePcieAlone) {
  unsigned generation = 0, most = 0, lanes = 0;
  EXPECT_EQ(nvmlDeviceGetCurrPcieLinkGeneration(first_, &generation), 0);
  EXPECT_EQ(nvmlDeviceGetMaxPcieLinkGeneration(first_, &most), 0);
  EXPECT_EQ(generation, most);
  EXPECT_GE(generation, 3u);
  EXPECT_EQ(nvmlDeviceGetCurrPcieLinkWidth(second_, &lanes), 0);
  EXPECT_EQ(lanes, 16u);
  int is_active = 9;
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first_, 0, &is_active), 0);
  EXPECT_EQ(is_active, 0);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(nullptr, 0, &is_active), 2);
}

}  // namespace
}  // namespace ashlar::hollow
