#include "tensor/io/npy_header.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "async/status_macros.h"

namespace hawser::tensor::internal {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kZipMagic = "PK\3\4";

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMostShown = 40;
  const std::string_view shown = text.substr(0, kMostShown);
  return absl::StrCat(
      "'", absl::CHexEscape(absl::string_view(shown.data(), shown.size())),
      text.size() > kMostShown ? "...'" : "'");
}

// The kind and item size of a descr, without byte order; empty for bf16.
std::string_view NumpyName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f4";
    case DType::kF64:
      return "f8";
    case DType::kF16:
      return "f2";
    case DType::kBF16:
      return "";
    case DType::kI64:
      return "i8";
    case DType::kI32:
      return "i4";
    case DType::kU8:
      return "u1";
    case DType::kBool:
      return "b1";
  }
  return "";
}

// Reads the literal from left to right:
//
//   dictionary := '{' [ entry { ',' entry } [ ',' ] ] '}'
//   entry      := string ':' value
//   value      := string | 'True' | 'False' | tuple
//   tuple      := '(' [ number { ',' number } [ ',' ] ] ')'
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  absl::StatusOr<NpyHeader> Read() {
    RETURN_IF_ERROR(Expect('{'));
    while (!Take('}')) {
      RETURN_IF_ERROR(ReadEntry());
      if (Take(',')) continue;
      RETURN_IF_ERROR(Expect('}'));
      break;
    }
    SkipSpace();
    if (position_ != text_.size()) return Unexpected("the end");
    if (!has_descr_ || !has_order_ || !has_shape_) {
      return Invalid("the header lacks descr, fortran_order or shape");
    }
    return header_;
  }

 private:
  absl::Status ReadEntry() {
    ASSIGN_OR_RETURN(const std::string_view key, ReadString());
    RETURN_IF_ERROR(Expect(':'));
    if (key == "descr")
      return ReadOnce(has_descr_, key, &DictionaryReader::ReadDescr);
    if (key == "fortran_order") {
      return ReadOnce(has_order_, key, &DictionaryReader::ReadOrder);
    }
    if (key == "shape")
      return ReadOnce(has_shape_, key, &DictionaryReader::ReadShape);
    return Invalid(
        absl::StrCat("the header has the unknown key ", Quoted(key)));
  }

  absl::Status ReadOnce(bool& seen, std::string_view key,
                        absl::Status (DictionaryReader::*read)()) {
    if (seen) {
      return Invalid(absl::StrCat("the header has ", Quoted(key), " twice"));
    }
    seen = true;
    return (this->*read)();
  }

  absl::Status ReadDescr() {
    if (Peek() == '[') {
      return Invalid(
          "structured dtypes are not supported: save each field by "
          "itself");
    }
    ASSIGN_OR_RETURN(const std::string_view descr, ReadString());
    std::string_view name = descr;
    constexpr std::string_view kOrders = "<>=|";
    if (!name.empty() && kOrders.find(name[0]) != std::string_view::npos) {
      header_.big_endian = name[0] == '>';
      name.remove_prefix(1);
    }
    if (name.starts_with('O')) {
      return Invalid(
          "pickled objects are not read, because they can run code: "
          "save the array with a numeric dtype");
    }
    for (int i = 0; i < kNumDTypes; ++i) {
      const DType dtype = static_cast<DType>(i);
      if (!name.empty() && NumpyName(dtype) == name) {
        header_.dtype = dtype;
        return absl::OkStatus();
      }
    }
    return Invalid(absl::StrCat("dtype ", Quoted(descr), " is not supported"));
  }

  absl::Status ReadOrder() {
    if (TakeWord("True")) {
      header_.fortran_order = true;
      return absl::OkStatus();
    }
    if (TakeWord("False")) return absl::OkStatus();
    return Unexpected("True or False");
  }

  absl::Status ReadShape() {
    RETURN_IF_ERROR(Expect('('));
    while (!Take(')')) {
      ASSIGN_OR_RETURN(const int64_t dim, ReadNumber());
      if (header_.shape.rank() == kMaxRank) {
        return Invalid(
            absl::StrCat("the shape has more than ", kMaxRank, " dimensions"));
      }
      header_.shape.Append(dim);
      const bool comma = Take(',');
      // (3) is a number in Python, not a tuple.
      if (!comma && header_.shape.rank() == 1) return Unexpected("','");
      if (!comma) {
        RETURN_IF_ERROR(Expect(')'));
        break;
      }
    }
    return header_.shape.CheckedNumElements().status();
  }

  absl::StatusOr<int64_t> ReadNumber() {
    SkipSpace();
    const char* const begin = text_.data() + position_;
    const char* const end = text_.data() + text_.size();
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || number < 0) {
      return Unexpected("a size in [0, 2^63)");
    }
    position_ += static_cast<size_t>(stop - begin);
    TakeWord("L");  // Python 2 wrote long integers this way.
    return number;
  }

  // A string without escapes.
  absl::StatusOr<std::string_view> ReadString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Unexpected("a string");
    const size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return Unexpected("a closed string");
    const std::string_view string =
        text_.substr(position_ + 1, end - position_ - 1);
    if (string.find('\\') != std::string_view::npos) {
      return Unexpected("a string without escapes");
    }
    position_ = end + 1;
    return string;
  }

  void SkipSpace() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
  }

  // The next character that is not a space; 0 at the end.
  char Peek() {
    SkipSpace();
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool Take(char c) {
    if (Peek() != c || position_ == text_.size()) return false;
    ++position_;
    return true;
  }

  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  absl::Status Expect(char c) {
    if (Take(c)) return absl::OkStatus();
    return Unexpected(absl::StrCat("'", absl::string_view(&c, 1), "'"));
  }

  absl::Status Unexpected(absl::string_view expected) const {
    return Invalid(absl::StrCat("expected ", expected, " at byte ", position_,
                                ", not ", Quoted(text_.substr(position_, 10))));
  }

  const std::string_view text_;
  size_t position_ = 0;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  NpyHeader header_;
};

}  // namespace

absl::StatusOr<size_t> NpyLengthBytes(std::string_view start) {
  if (start.size() != kNpyMagicBytes || !start.starts_with(kMagic)) {
    if (start.starts_with(kZipMagic)) {
      return Invalid(
          "it is a zip archive, as .npz files are: unzip it and read each .npy "
          "file in it, or save each array by itself with numpy.save");
    }
    return Invalid("it does not begin with the magic of an npy file");
  }
  const int version = static_cast<unsigned char>(start[6]);
  const int minor = static_cast<unsigned char>(start[7]);
  if (version < 1 || version > 3 || minor != 0) {
    return Invalid(
        absl::StrCat("format version ", version, ".", minor, " is unknown"));
  }
  return version == 1 ? 2 : 4;
}

absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text) {
  return DictionaryReader(text).Read();
}

absl::StatusOr<std::string> FormatNpyHeader(DType dtype, const Shape& shape) {
  const std::string_view name = NumpyName(dtype);
  if (name.empty()) {
    return Invalid(
        "NumPy has no bf16: convert the tensor to f32, or save it as "
        "safetensors");
  }
  std::string dictionary = absl::StrCat(
      "{'descr': '", ItemBytes(dtype) == 1 ? "|" : "<",
      absl::string_view(name.data(), name.size()),
      "', 'fortran_order': False, 'shape': (",
      absl::StrJoin(absl::MakeConstSpan(shape.begin(), shape.end()), ", "),
      shape.rank() == 1 ? ",), }" : "), }");
  constexpr size_t kAlignment = 64;
  constexpr size_t kPrefixBytes = kNpyMagicBytes + 2;
  while ((kPrefixBytes + dictionary.size() + 1) % kAlignment != 0) {
    dictionary.push_back(' ');
  }
  dictionary.push_back('\n');
  std::string header(kMagic);
  header += {'\1', '\0', static_cast<char>(dictionary.size() & 0xff),
             static_cast<char>(dictionary.size() >> 8)};
  return header + dictionary;
}

}  // namespace hawser::tensor::internal
