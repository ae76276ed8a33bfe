// The recorded snapshots of the shared test data, by name. Call only where SharedDir() is there.
#ifndef ASHLAR_TESTS_CORPUS_FILES_H_
#define ASHLAR_TESTS_CORPUS_FILES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/shared_dir.h"

namespace ashlar {

inline std::vector<std::string> SnapshotFiles(const std::string& folder = "corpus") {
  constexpr std::string_view kEnding = ".pickle.gz";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(*SharedDir() + "/" + folder)) {
    const std::string name = entry.path().string();
    if (name.size() > kEnding.size() && name.ends_with(kEnding)) files.push_back(name);
  }
  EXPECT_FALSE(files.empty()) << "no recorded snapshot in " << *SharedDir() << "/" << folder;
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_CORPUS_FILES_H_
