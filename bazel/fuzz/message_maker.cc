#include "bazel/fuzz/message_maker.h"

#include <array>
#include <limits>
#include <utility>

#include "google/protobuf/descriptor.h"

namespace hawser::fuzz {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

// Of fields that the message codec adds.
constexpr int kFirstCodecField = 13;
constexpr int kLastCodecField = 15;
// Deeper submessages are not set.
constexpr int kMaxDepth = 6;
constexpr size_t kMaxRepeated = 5;
constexpr size_t kMaxOffered = 12;

}  // namespace

void MessageMaker::Offer(const Message& message) {
  auto& offered = messages_[message.GetDescriptor()->full_name()];
  if (offered.size() == kMaxOffered) return;
  offered.emplace_back(message.New())->CopyFrom(message);
}

void MessageMaker::Fill(Message& message, int depth) {
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.number() >= kFirstCodecField &&
        field.number() <= kLastCodecField) {
      continue;
    }
    const auto* const oneof = field.real_containing_oneof();
    if (oneof == nullptr) {
      FillField(field, message, depth);
    } else if (oneof->field(0) == &field) {
      // One choice for all of its fields; 0 sets none.
      const size_t choice =
          input_.Below(static_cast<size_t>(oneof->field_count()) + 1);
      if (choice > 0) {
        AddValue(*oneof->field(static_cast<int>(choice) - 1), message, depth);
      }
    }
  }
}

void MessageMaker::FillField(const FieldDescriptor& field, Message& message,
                             int depth) {
  if (field.is_repeated()) {
    const size_t count = input_.Below(kMaxRepeated + 1);
    for (size_t i = 0; i < count; ++i) AddValue(field, message, depth);
  } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
             input_.Below(8) != 0) {
    AddValue(field, message, depth);
  }
}

void MessageMaker::FillSubmessage(Message& message, int depth) {
  const auto offered = messages_.find(message.GetDescriptor()->full_name());
  if (offered != messages_.end()) {
    const size_t choice = input_.Below(offered->second.size() + 1);
    if (choice < offered->second.size()) {
      message.CopyFrom(*offered->second[choice]);
      return;
    }
  }
  if (depth < kMaxDepth && !input_.empty()) Fill(message, depth + 1);
}

uint64_t MessageMaker::NumberFor(const FieldDescriptor& field) {
  const auto offered = numbers_.find(field.full_name());
  if (offered != numbers_.end()) {
    const size_t choice = input_.Below(offered->second.size() + 1);
    if (choice < offered->second.size()) return offered->second[choice];
  }
  return input_.Number();
}

std::string MessageMaker::StringFor(const FieldDescriptor& field) {
  const auto offered = strings_.find(field.full_name());
  if (offered != strings_.end()) {
    const size_t choice = input_.Below(offered->second.size() + 1);
    if (choice < offered->second.size()) return offered->second[choice];
  }
  std::string text(input_.Bytes());
  if (field.type() == FieldDescriptor::TYPE_STRING) {
    // Others than UTF-8 do not parse.
    for (char& c : text) c = static_cast<char>(c & 0x7F);
  }
  return text;
}

double MessageMaker::Real() {
  constexpr std::array<double, 4> kLimits = {
      std::numeric_limits<double>::infinity(),
      -std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::quiet_NaN(),
      std::numeric_limits<double>::max()};
  const uint8_t choice = input_.Byte();
  if (choice >= 256 - kLimits.size()) return kLimits[255 - choice];
  return (choice - 64) / 4.0;
}

void MessageMaker::AddValue(const FieldDescriptor& field, Message& message,
                            int depth) {
  const Reflection& reflection = *message.GetReflection();
  const auto put = [&](auto add, auto set, auto value) {
    (reflection.*(field.is_repeated() ? add : set))(&message, &field,
                                                    std::move(value));
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      FillSubmessage(field.is_repeated()
                         ? *reflection.AddMessage(&message, &field)
                         : *reflection.MutableMessage(&message, &field),
                     depth);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      put(&Reflection::AddString, &Reflection::SetString, StringFor(field));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      put(&Reflection::AddBool, &Reflection::SetBool, input_.Bool());
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      put(&Reflection::AddEnumValue, &Reflection::SetEnumValue,
          static_cast<int>(NumberFor(field)));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      put(&Reflection::AddInt32, &Reflection::SetInt32,
          static_cast<int32_t>(NumberFor(field)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      put(&Reflection::AddInt64, &Reflection::SetInt64,
          static_cast<int64_t>(NumberFor(field)));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      put(&Reflection::AddUInt32, &Reflection::SetUInt32,
          static_cast<uint32_t>(NumberFor(field)));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      put(&Reflection::AddUInt64, &Reflection::SetUInt64, NumberFor(field));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      put(&Reflection::AddFloat, &Reflection::SetFloat,
          static_cast<float>(Real()));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      put(&Reflection::AddDouble, &Reflection::SetDouble, Real());
      break;
  }
}

}  // namespace hawser::fuzz
