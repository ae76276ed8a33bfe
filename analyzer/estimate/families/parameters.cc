// parameters, a format of our own: a plain list of names and shapes.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/families/families.h"

namespace ashlar::estimate {
namespace {

constexpr std::size_t kMostDims = 8;

std::vector<std::int64_t> ReadShape(const ConfigKeys::Json& entry, const std::string& path, ConfigKeys& keys) {
  std::vector<std::int64_t> out;
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array() || shape->size() > kMostDims) {
    keys.Fail(absl::StrCat("\"", path, ".shape\" is not a list of at most ", kMostDims, " sizes"));
    return out;
  }
  double elements = 1;
  for (const ConfigKeys::Json& size : *shape) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > 2'147'483'647) {
      keys.Fail(absl::StrCat("\"", path, ".shape\" holds what is not a size from 0 to 2147483647"));
      return {};
    }
    out.push_back(size.get<std::int64_t>());
    elements *= static_cast<double>(out.back());
  }
  if (elements > 1e15) {
    keys.Fail(absl::StrCat("\"", path, ".shape\" is of over 10^15 elements"));
    return {};
  }
  return out;
}

}  // namespace

void DescribeParameters(ConfigKeys& keys, Model& model) {
  const ConfigKeys::Json& object = keys.object();
  const auto list = object.find("parameters");
  if (list == object.end() || !list->is_array() || list->empty()) {
    keys.Fail("\"parameters\" is missing: a list of {\"name\": ..., \"shape\": [...]}, one a parameter");
    return;
  }
  for (const ConfigKeys::Json& entry : *list) {
    const std::string path = absl::StrCat("parameters[", model.parameters.size(), "]");
    if (!entry.is_object()) {
      keys.Fail(absl::StrCat("\"", path, "\" is not an object with \"name\" and \"shape\""));
      return;
    }
    ConfigKeys of_entry(entry, path + ".");
    std::string name = of_entry.Text("name", path.c_str());
    if (!of_entry.status().ok()) keys.Fail(std::string(of_entry.status().message()));
    model.parameters.push_back({std::move(name), ReadShape(entry, path, keys)});
  }
}

}  // namespace ashlar::estimate
