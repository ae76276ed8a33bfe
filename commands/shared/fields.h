// The fields of an answer, each written once: its key, its value, and what it means. The JSON of the answer and its
// schema (docs/schemas) are made of them.
//
//   template <>
//   const Fields<whatif::Risk>& FieldsOf<whatif::Risk>() {
//     static const auto* fields = new Fields<whatif::Risk>(
//         Fields<whatif::Risk>("risk")
//             .Add("name", &whatif::Risk::name, "Stable key.")
//             .AddWord("level", [](const auto& risk) { return RiskLevelName(risk.level); }, RiskLevels(), "How bad."));
//     return *fields;
//   }
//   Json json = FieldsOf<whatif::Risk>().ToJson(risk);
//
// The type of a value tells its schema: a flag, a number, a text, another object with fields, an optional or a vector
// of these. An optional without a value is null.
#ifndef ASHLAR_COMMANDS_SHARED_FIELDS_H_
#define ASHLAR_COMMANDS_SHARED_FIELDS_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/note.h"
#include "commands/shared/json_values.h"

namespace ashlar::report {

template <typename T>
class Fields;

// Of each object of an answer a specialisation, beside the answer.
template <typename T>
const Fields<T>& FieldsOf();

// The objects of a schema by name, in the order in which they were first needed.
class Definitions {
 public:
  // A reference to the object, which `make` makes where it is not there yet.
  Json Reference(absl::string_view name, const std::function<Json(Definitions&)>& make);
  const Json::Members& all() const { return all_; }

 private:
  Json::Members all_;
};

// Nothing where the text is empty.
inline std::optional<std::string> NonEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// The schema, of a value that may be null.
Json NullOr(const Json& schema);
Json ArrayOf(const Json& items);

template <typename Value>
struct ValueOf {
  static Json ToJson(const Value& value) {
    if constexpr (std::is_constructible_v<Json, const Value&>) {
      return Json(value);
    } else {
      return FieldsOf<Value>().ToJson(value);
    }
  }
  static Json Schema(Definitions& definitions) {
    if constexpr (std::same_as<Value, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::unsigned_integral<Value>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::signed_integral<Value>) {
      return {{"type", "integer"}};
    } else if constexpr (std::floating_point<Value>) {
      return {{"type", "number"}};
    } else if constexpr (std::is_constructible_v<Json, const Value&>) {
      return {{"type", "string"}};
    } else {
      return FieldsOf<Value>().Reference(definitions);
    }
  }
};

template <typename Value>
struct ValueOf<std::optional<Value>> {
  static Json ToJson(const std::optional<Value>& value) {
    return value.has_value() ? ValueOf<Value>::ToJson(*value) : Json();
  }
  static Json Schema(Definitions& definitions) { return NullOr(ValueOf<Value>::Schema(definitions)); }
};

template <typename Value>
struct ValueOf<std::vector<Value>> {
  static Json ToJson(const std::vector<Value>& values) {
    Json out = Json::Array();
    for (const Value& value : values) out.Append(ValueOf<Value>::ToJson(value));
    return out;
  }
  static Json Schema(Definitions& definitions) { return ArrayOf(ValueOf<Value>::Schema(definitions)); }
};

// The unsigned type of a signed number, and of an optional or a vector of them.
template <typename Value>
struct Unsigned {
  using Type = std::make_unsigned_t<Value>;
};
template <typename Value>
struct Unsigned<std::optional<Value>> {
  using Type = std::optional<typename Unsigned<Value>::Type>;
};
template <typename Value>
struct Unsigned<std::vector<Value>> {
  using Type = std::vector<typename Unsigned<Value>::Type>;
};
template <typename Value>
using UnsignedOf = typename Unsigned<Value>::Type;

// As many items as there are.
template <typename Value, std::size_t size>
struct ValueOf<std::array<Value, size>> {
  static Json ToJson(const std::array<Value, size>& values) { return Json(std::vector(values.begin(), values.end())); }
  static Json Schema(Definitions& definitions) {
    Json out = ArrayOf(ValueOf<Value>::Schema(definitions));
    out["minItems"] = size;
    out["maxItems"] = size;
    return out;
  }
};

// A number that is whole or a share.
template <>
struct ValueOf<std::variant<std::uint64_t, double>> {
  static Json ToJson(const std::variant<std::uint64_t, double>& value) {
    return std::visit([](auto number) { return Json(number); }, value);
  }
  static Json Schema(Definitions&) { return {{"type", "number"}}; }
};

template <typename Value>
Json JsonOf(const Value& value) {
  return ValueOf<Value>::ToJson(value);
}

// The fields without the types of objects and values, so that the code below the getters is one for all answers.
class FieldList {
 public:
  using Keys = std::initializer_list<absl::string_view>;
  using SchemaMaker = Json (*)(Definitions&);
  // A pointer to a member or a function as it is stored: what calls it knows its type, and that of the object.
  using Getter = std::uintptr_t;
  struct Value {
    Json (*call)(Getter get, const void* of);
    Getter get;
  };
  struct Part {
    const void* (*call)(Getter get, const void* of);
    Getter get;
  };

  explicit FieldList(absl::string_view name) : name_(name) {}

  const std::string& name() const { return name_; }
  void Add(absl::string_view key, Value value, SchemaMaker schema, absl::string_view description);
  void AddWord(absl::string_view key, Value word, SchemaMaker schema, const std::vector<absl::string_view>& words,
               absl::string_view description);
  void AddFrom(const FieldList& fields, Part part);
  void AtLeast(std::int64_t least) { fields_.back().least = least; }
  void AtMost(std::int64_t most) { fields_.back().most = most; }
  FieldList Chosen(absl::string_view name, Keys keys, bool are_chosen) const;

  Json ToJson(const void* of) const;
  // To the object among the definitions.
  Json Reference(Definitions& definitions) const;

 private:
  struct Field {
    std::string key;
    Value value;
    SchemaMaker schema;
    std::string description;
    std::vector<std::string> words = {};  // where it is one of these
    std::optional<std::int64_t> least = {};
    std::optional<std::int64_t> most = {};
    std::vector<Part> path = {};  // from the object to what `value` is of

    Json SchemaIn(Definitions& definitions) const;
  };

  Json Schema(Definitions& definitions) const;

  std::string name_;
  std::vector<Field> fields_;
};

// A getter is a pointer to a member, a function, or a lambda without a capture.
template <typename T>
class Fields {
 public:
  // `name`: of the definition in the schema.
  explicit Fields(absl::string_view name) : list_(name) {}

  // `value(of)` is what the field says of a T.
  template <typename Get>
  Fields& Add(absl::string_view key, Get value, absl::string_view description = "") {
    using Said = std::decay_t<std::invoke_result_t<Get, const T&>>;
    list_.Add(key, {&Call<Stored<Get>, Said>, Bits(value)}, &ValueOf<Said>::Schema, description);
    return *this;
  }
  // Of signed numbers that are 0 or more.
  template <typename Get>
  Fields& AddCount(absl::string_view key, Get value, absl::string_view description = "") {
    using Said = std::decay_t<std::invoke_result_t<Get, const T&>>;
    list_.Add(key, {&Call<Stored<Get>, Said>, Bits(value)}, &ValueOf<UnsignedOf<Said>>::Schema, description);
    return *this;
  }
  // A text that is null where it is empty.
  template <typename Get>
  Fields& AddNonEmpty(absl::string_view key, Get text, absl::string_view description) {
    using Said = std::optional<std::string>;
    const auto call = [](FieldList::Getter get, const void* of) { return TextOrNull(Result<Stored<Get>>(get, of)); };
    list_.Add(key, {call, Bits(text)}, &ValueOf<Said>::Schema, description);
    return *this;
  }
  // One of these words, or of an optional none.
  template <typename Get>
  Fields& AddWord(absl::string_view key, Get word, const std::vector<absl::string_view>& words,
                  absl::string_view description) {
    using Said = std::decay_t<std::invoke_result_t<Get, const T&>>;
    list_.AddWord(key, {&Call<Stored<Get>, Said>, Bits(word)}, &ValueOf<Said>::Schema, words, description);
    return *this;
  }
  // The field before has at least so many items, or is no lower number.
  Fields& AtLeast(std::int64_t least) {
    list_.AtLeast(least);
    return *this;
  }
  // ... or is no higher one.
  Fields& AtMost(std::int64_t most) {
    list_.AtMost(most);
    return *this;
  }
  // The fields of a part, or of the object that this one shows: `part` returns a reference to it.
  template <typename Of, typename Get>
  Fields& AddFrom(const Fields<Of>& fields, Get part) {
    static_assert(std::is_lvalue_reference_v<std::invoke_result_t<Get, const T&>>);
    const auto call = [](FieldList::Getter get, const void* of) -> const void* {
      const Of& found = Result<Stored<Get>>(get, of);
      return &found;
    };
    list_.AddFrom(fields.list_, {call, Bits(part)});
    return *this;
  }
  // Some of the fields, as an object of another name.
  Fields Only(absl::string_view name, FieldList::Keys keys) const { return Fields(list_.Chosen(name, keys, true)); }
  Fields AllBut(absl::string_view name, FieldList::Keys keys) const { return Fields(list_.Chosen(name, keys, false)); }

  const std::string& name() const { return list_.name(); }
  Json ToJson(const T& of) const { return list_.ToJson(&of); }
  Json Reference(Definitions& definitions) const { return list_.Reference(definitions); }

 private:
  template <typename Other>
  friend class Fields;

  explicit Fields(FieldList list) : list_(std::move(list)) {}

  // A lambda is stored as the function that it is: what calls those of one result is one code.
  template <typename Get>
  using Stored = std::conditional_t<std::is_class_v<Get>, std::invoke_result_t<Get, const T&> (*)(const T&), Get>;

  template <typename Get>
  static FieldList::Getter Bits(Get get) {
    return absl::bit_cast<FieldList::Getter>(static_cast<Stored<Get>>(get));
  }
  template <typename Get>
  static decltype(auto) Result(FieldList::Getter get, const void* of) {
    return std::invoke(absl::bit_cast<Get>(get), *static_cast<const T*>(of));
  }
  template <typename Get, typename Said>
  static Json Call(FieldList::Getter get, const void* of) {
    return ValueOf<Said>::ToJson(Result<Get>(get, of));
  }

  FieldList list_;
};

// The words of an enumeration up to `last`, as `name` has them.
template <typename Enum, typename Name>
std::vector<absl::string_view> WordsUpTo(Enum last, Name name) {
  std::vector<absl::string_view> out;
  for (int i = 0; i <= static_cast<int>(last); ++i) out.push_back(name(static_cast<Enum>(i)));
  return out;
}

template <>
const Fields<trace::Note>& FieldsOf<trace::Note>();

// The whole schema of the answer of `ashlar COMMAND --json`, as docs/schemas has it: a property a line. `root`: what it
// is. Its $id is a name that no host answers, so that schemas find each other wherever they lie.
std::string SchemaText(absl::string_view command, absl::string_view description, const Json& root,
                       const Definitions& definitions);

template <typename T>
std::string SchemaTextOf(absl::string_view command, absl::string_view description) {
  Definitions definitions;
  const Json root = ValueOf<T>::Schema(definitions);
  return SchemaText(command, description, root, definitions);
}

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_FIELDS_H_
