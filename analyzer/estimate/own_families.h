// Model files of our own format (docs/guide/estimate.md), for what no config.json describes.
#ifndef ASHLAR_ANALYZER_ESTIMATE_OWN_FAMILIES_H_
#define ASHLAR_ANALYZER_ESTIMATE_OWN_FAMILIES_H_

#include "analyzer/estimate/config_keys.h"
#include "analyzer/estimate/model.h"

namespace ashlar::estimate {

// TabFormer's hierarchical BERT: columns with their categories, a field encoder, and BERT over rows.
void DescribeTabFormer(const ConfigKeys::Json& object, ConfigKeys& keys, Model& model);
// A plain list of names and shapes.
void DescribeParameters(const ConfigKeys::Json& object, ConfigKeys& keys, Model& model);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_OWN_FAMILIES_H_
