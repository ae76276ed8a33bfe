// A page of the documents that is made of a table in the program.
//
//   ExpectPage("guide/gpus.md", PageOfTheTable());
#ifndef ASHLAR_TESTS_EXPECT_PAGE_H_
#define ASHLAR_TESTS_EXPECT_PAGE_H_

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ashlar::tests {

// `name` below docs. Write the page anew from the file that a failure names.
inline void ExpectPage(const std::string& name, const std::string& wanted) {
  std::ifstream file(absl::StrCat(ASHLAR_SOURCE_DIR, "/docs/", name));
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (page == wanted) return;
  const std::string path = testing::TempDir() + name.substr(name.rfind('/') + 1);
  std::ofstream(path) << wanted;
  ADD_FAILURE() << "docs/" << name << " is not the table: take " << path;
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_EXPECT_PAGE_H_
