// The columns of a what-if and of a replay's fidelity, as `ashlar explain` and `ashlar sweep` give them.
#ifndef ASHLAR_COMMANDS_SHARED_WHAT_IF_FIELDS_H_
#define ASHLAR_COMMANDS_SHARED_WHAT_IF_FIELDS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/whatif/risk.h"
#include "analyzer/whatif/what_if.h"
#include "commands/shared/fields.h"

namespace ashlar::report {

template <>
const Fields<whatif::WhatIfRow>& FieldsOf<whatif::WhatIfRow>();
template <>
const Fields<whatif::ProjectedPart>& FieldsOf<whatif::ProjectedPart>();
template <>
const Fields<replay::Fidelity>& FieldsOf<replay::Fidelity>();
template <>
const Fields<whatif::Risk>& FieldsOf<whatif::Risk>();
// The words of a risk's level, least first.
std::vector<absl::string_view> RiskLevels();

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_WHAT_IF_FIELDS_H_
