#include "rpc/wire/encoder.h"

#include <cstring>
#include <utility>

#include "async/check.h"
#include "rpc/wire/value_fields.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

using internal::AppendBytesField;
using internal::AppendFixed64Field;
using internal::AppendVarint;
using internal::AppendVarintField;
using internal::MakeTag;
using internal::WireType;
using internal::ZigZag;

// All tags here fit one byte.
constexpr uint8_t BytesTag(uint32_t field) {
  return static_cast<uint8_t>(MakeTag(field, WireType::kBytes));
}

constexpr uint8_t kListElement = BytesTag(internal::kListValues);
constexpr uint8_t kMapElement = BytesTag(internal::kMapEntries);

bool IsContinuation(unsigned char c) { return (c & 0xc0) == 0x80; }

// Length of the UTF-8 character at the start of `text`; 0 if malformed.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  // The second byte's range excludes overlong forms, surrogates and code points
  // above U+10FFFF.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  return length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

void Encoder::Open(uint8_t tag) {
  out_.push_back(static_cast<char>(tag));
  open_.push_back(out_.size());
}

void Encoder::Close() {
  HAWSER_CHECK(!open_.empty()) << "nothing is open";
  const size_t start = open_.back();
  open_.pop_back();
  char length[internal::kMaxVarintBytes];
  const size_t length_bytes = internal::PutVarint(out_.size() - start, length);
  out_.insert(start, length, length_bytes);
}

void Encoder::OpenElement() {
  last_is_null_ = false;
  if (element_tags_.empty()) {
    Open(kListElement);
    return;
  }
  uint8_t& tag = element_tags_.back();
  Open(tag);
  // In an entry, the value's field follows the key's.
  if (in_entry_.back()) {
    HAWSER_CHECK(tag <= BytesTag(internal::kEntryValue))
        << "a map entry has one key and one value";
    tag = static_cast<uint8_t>(tag + (1 << 3));
  }
}

void Encoder::WriteNull() {
  OpenElement();
  AppendBytesField(internal::kNullValue, "", out_);
  Close();
  last_is_null_ = true;
}

void Encoder::WriteBool(bool value) {
  OpenElement();
  AppendVarintField(internal::kBoolValue, value ? 1 : 0, out_);
  Close();
}

void Encoder::WriteInt(int64_t value) {
  OpenElement();
  AppendVarintField(internal::kIntValue, ZigZag(value), out_);
  Close();
}

void Encoder::WriteUint(uint64_t value) {
  OpenElement();
  AppendVarintField(internal::kUintValue, value, out_);
  Close();
}

void Encoder::WriteDouble(double value) {
  OpenElement();
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  AppendFixed64Field(internal::kDoubleValue, bits, out_);
  Close();
}

void Encoder::WriteString(std::string_view value) {
  OpenElement();
  AppendBytesField(
      IsUtf8(value) ? internal::kStringValue : internal::kBytesValue, value,
      out_);
  Close();
}

void Encoder::WriteBytes(std::string_view value) {
  OpenElement();
  AppendBytesField(internal::kBytesValue, value, out_);
  Close();
}

void Encoder::WriteTensor(tensor::Tensor value) {
  if (!value.defined()) {
    WriteNull();
    return;
  }
  OpenElement();
  AppendVarintField(internal::kTensorIndex, tensors_.size(), out_);
  Close();
  tensors_.push_back(std::move(value));
}

void Encoder::WriteMessage(std::string_view type, std::string_view data) {
  OpenElement();
  Open(BytesTag(internal::kMessageValue));
  AppendBytesField(internal::kMessageType, type, out_);
  AppendBytesField(internal::kMessageData, data, out_);
  Close();
  Close();
}

void Encoder::WriteInts(std::span<const int64_t> values) {
  OpenElement();
  Open(BytesTag(internal::kIntList));
  Open(BytesTag(internal::kPackedValues));
  for (int64_t value : values) AppendVarint(ZigZag(value), out_);
  Close();
  Close();
  Close();
}

void Encoder::WriteUints(std::span<const uint64_t> values) {
  OpenElement();
  Open(BytesTag(internal::kUintList));
  Open(BytesTag(internal::kPackedValues));
  for (uint64_t value : values) AppendVarint(value, out_);
  Close();
  Close();
  Close();
}

void Encoder::WriteDoubles(std::span<const double> values) {
  OpenElement();
  Open(BytesTag(internal::kDoubleList));
  AppendBytesField(
      internal::kPackedValues,
      {reinterpret_cast<const char*>(values.data()), values.size_bytes()},
      out_);
  Close();
  Close();
}

void Encoder::Begin(uint8_t element_tag, bool entry) {
  element_tags_.push_back(element_tag);
  in_entry_.push_back(entry);
}

void Encoder::End() {
  HAWSER_CHECK(!element_tags_.empty()) << "nothing is open";
  element_tags_.pop_back();
  in_entry_.pop_back();
  Close();
  last_is_null_ = false;
}

void Encoder::BeginList() {
  OpenElement();
  Open(BytesTag(internal::kListValue));
  Begin(kListElement, /*entry=*/false);
}

void Encoder::EndList() {
  End();
  Close();
}

void Encoder::BeginMap() {
  OpenElement();
  Open(BytesTag(internal::kMapValue));
  Begin(kMapElement, /*entry=*/false);
}

void Encoder::EndMap() {
  End();
  Close();
}

void Encoder::BeginEntry() {
  OpenElement();
  Begin(BytesTag(internal::kEntryKey), /*entry=*/true);
}

void Encoder::EndEntry() { End(); }

std::string Encoder::TakeValues() {
  HAWSER_CHECK(open_.empty()) << "a list or map is still open";
  return std::exchange(out_, {});
}

std::vector<tensor::Tensor> Encoder::TakeTensors() {
  return std::exchange(tensors_, {});
}

}  // namespace hawser::rpc
