// The fields of where the memory went and who holds it: the parts of an explanation's JSON that answer `memory` has.
#ifndef ASHLAR_COMMANDS_EXPLAIN_MEMORY_FIELDS_H_
#define ASHLAR_COMMANDS_EXPLAIN_MEMORY_FIELDS_H_

#include "commands/explain/explanation.h"
#include "commands/shared/fields.h"

namespace ashlar::report {

template <>
const Fields<answers::OomAccounting>& FieldsOf<answers::OomAccounting>();
template <>
const Fields<answers::PeakFigures>& FieldsOf<answers::PeakFigures>();
template <>
const Fields<analyses::LabelledStack>& FieldsOf<analyses::LabelledStack>();
template <>
const Fields<analyses::LiveSize>& FieldsOf<analyses::LiveSize>();
template <>
const Fields<trace::Holder>& FieldsOf<trace::Holder>();
template <>
const Fields<analyses::HeldRow>& FieldsOf<analyses::HeldRow>();
template <>
const Fields<analyses::HeldByName>& FieldsOf<analyses::HeldByName>();
template <>
const Fields<answers::LabelLine>& FieldsOf<answers::LabelLine>();
template <>
const Fields<answers::HostFigures>& FieldsOf<answers::HostFigures>();
template <>
const Fields<answers::OwnedBytes>& FieldsOf<answers::OwnedBytes>();
template <>
const Fields<answers::ByLibrary>& FieldsOf<answers::ByLibrary>();
template <>
const Fields<answers::LiveAtEnd>& FieldsOf<answers::LiveAtEnd>();

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_EXPLAIN_MEMORY_FIELDS_H_
