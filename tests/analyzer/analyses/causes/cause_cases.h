// Inputs for the table of hits and false alarms: programs with one known flaw, and programs with none. To add cases,
// append to a list or add a list of your own to AllSeeded().
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_CAUSE_CASES_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_CAUSE_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {

struct SeededCase {
  std::string name;
  analyses::CauseKind truth;  // must be found first or second
  std::function<SeededInput()> make;
};

struct HealthyCase {
  std::string name;
  std::function<SeededInput()> make;  // nothing may be found
};

std::vector<SeededCase> DeviceCases();       // the device and what lies outside: cause_cases_device.cc
std::vector<SeededCase> HoleCases();         // holes and pieces: cause_cases_holes.cc
std::vector<SeededCase> PoolCases();         // streams, pools, retries, pending frees: cause_cases_pools.cc
std::vector<SeededCase> SettingsCases();     // rounding, split limits: cause_cases_settings.cc
std::vector<SeededCase> ProgramCases();      // what the program keeps: cause_cases_program.cc
std::vector<SeededCase> LeakCases();         // what it keeps from step to step: cause_cases_leaks.cc
std::vector<SeededCase> MemoryCases();       // what the memory is made of: cause_cases_memory.cc
std::vector<SeededCase> OwnerCases();        // who stands in a stack and did not make the block: cause_cases_owners.cc
std::vector<SeededCase> AllSeeded();         // all of them
std::vector<HealthyCase> HealthyPrograms();  // cause_cases_program.cc
std::vector<HealthyCase> HealthyLeaks();     // cause_cases_leaks.cc
std::vector<HealthyCase> HealthyMemory();    // cause_cases_memory.cc
std::vector<HealthyCase> HealthyOwners();    // cause_cases_owners.cc
std::vector<HealthyCase> AllHealthy();       // all of them

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_CAUSE_CASES_H_
