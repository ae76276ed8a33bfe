#include "commands/fleet/link.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace ashlar::fleet {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<FleetLaunch> Find(const Variables& variables) {
  return FindLaunch([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, OpenMpi) {
  const std::optional<FleetLaunch> launch = Find({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->launcher, "mpirun (Open MPI)");
  EXPECT_EQ(launch->rank, 2);
  EXPECT_EQ(launch->size, 4);
}

TEST(Launcher, AStepOfSlurm) {
  const std::optional<FleetLaunch> launch =
      Find({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"PMIX_RANK", "1"}});
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->launcher, "srun");
  EXPECT_EQ(launch->size, 8);
}

TEST(Launcher, ABatchScriptIsNoStepOfSeveral) {
  EXPECT_FALSE(Find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "17"}}).has_value());
  EXPECT_FALSE(Find({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).has_value());
}

TEST(Launcher, PmiAndPmix) {
  EXPECT_EQ(Find({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})->launcher, "mpiexec (PMI)");
  EXPECT_EQ(Find({{"PMIX_RANK", "3"}})->rank, 3);
  EXPECT_EQ(Find({{"PMIX_RANK", "3"}})->size, 0);
}

TEST(Launcher, NothingAndNonsense) {
  EXPECT_FALSE(Find({}).has_value());
  EXPECT_FALSE(Find({{"OMPI_COMM_WORLD_RANK", "zero"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).has_value());
  EXPECT_FALSE(Find({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).has_value());
}

}  // namespace
}  // namespace ashlar::fleet
