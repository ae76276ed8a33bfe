// A value of a pickle as text, for what the model keeps as text: settings, labels. Deep or long ones are cut off.
//
//   PrintValue(document, value)   "True", "1:0,2:4", "0.8"
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_PRINT_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_PRINT_H_

#include <string>

#include "analyzer/readers/pickle/pickle_document.h"

namespace ashlar::readers {

std::string PrintValue(const pickle::Document& document, const pickle::Value& value);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_PRINT_H_
