// Gradients of a request, read where the transport has them.

#ifndef HAWSER_PS_SERVER_GRADIENT_READER_H_
#define HAWSER_PS_SERVER_GRADIENT_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/row_encoding.h"
#include "ps/server/request_checks.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"

namespace hawser::ps {

// Reads rows of gradients in f32, through memory that is used again.
//
// Thread-compatible. The tensors of `rows` outlive the reader.
class GradientReader {
 public:
  GradientReader(const EncodedRows& rows, size_t width)
      : rows_(rows), width_(width) {}

  // Valid until the next call.
  // kInvalidArgument: positions are not ascending or out of range; of the first
  // call alone.
  absl::StatusOr<const float*> Read(size_t begin, size_t end) {
    if (const float* in_place = InPlace(begin, end)) return in_place;
    wide_.resize((end - begin) * width_);
    if (rows_.positions != nullptr) {
      RETURN_IF_ERROR(ReadNonZero(begin * width_));
      return wide_.data();
    }
    switch (rows_.values[0].dtype()) {
      case tensor::DType::kF32:
        RETURN_IF_ERROR(ReadParts(begin * width_));
        break;
      case tensor::DType::kU8:
        RETURN_IF_ERROR(ReadI8(begin, end));
        break;
      default:
        RETURN_IF_ERROR(ReadHalf(begin * width_));
    }
    return wide_.data();
  }

  // The first `count` rows, in memory of their own.
  absl::StatusOr<std::vector<float>> Take(size_t count) {
    ASSIGN_OR_RETURN(const float* const read, Read(0, count));
    if (read != wide_.data()) wide_.assign(read, read + count * width_);
    return std::move(wide_);
  }

 private:
  // The rows where they arrived, or null if they must be copied.
  const float* InPlace(size_t begin, size_t end) const {
    if (rows_.positions != nullptr || rows_.values.size() != 1 ||
        rows_.values[0].dtype() != tensor::DType::kF32) {
      return nullptr;
    }
    return reinterpret_cast<const float*>(
        rows_.values[0]
            .ReadInPlace(begin * width_ * sizeof(float),
                         (end - begin) * width_ * sizeof(float))
            .data());
  }

  // Reads the elements from number `begin` on.
  template <class T>
  static absl::Status ReadPart(const rpc::LazyTensor& tensor, size_t begin,
                               std::span<T> to) {
    return tensor.ReadInto(begin * sizeof(T), std::as_writable_bytes(to));
  }

  absl::Status ReadParts(size_t begin) {
    std::span<float> to(wide_);
    for (const rpc::LazyTensor& part : rows_.values) {
      const size_t size = part.bytes() / sizeof(float);
      if (begin < size) {
        const size_t here = std::min(to.size(), size - begin);
        RETURN_IF_ERROR(ReadPart(part, begin, to.first(here)));
        to = to.subspan(here);
        begin += here;
      }
      if (to.empty()) break;
      begin -= size;
    }
    return absl::OkStatus();
  }

  absl::Status ReadHalf(size_t begin) {
    narrow_.resize(wide_.size());
    RETURN_IF_ERROR(ReadPart(rows_.values[0], begin, std::span(narrow_)));
    const auto count = static_cast<int64_t>(narrow_.size());
    if (rows_.values[0].dtype() == tensor::DType::kF16) {
      tensor::HalfToFloat(reinterpret_cast<const tensor::Half*>(narrow_.data()),
                          wide_.data(), count);
    } else {
      tensor::BFloat16ToFloat(
          reinterpret_cast<const tensor::BFloat16*>(narrow_.data()),
          wide_.data(), count);
    }
    return absl::OkStatus();
  }

  absl::Status ReadI8(size_t begin, size_t end) {
    codes_.resize(wide_.size());
    scales_.resize(end - begin);
    RETURN_IF_ERROR(
        ReadPart(rows_.values[0], begin * width_, std::span(codes_)));
    RETURN_IF_ERROR(ReadPart(*rows_.scales, begin, std::span(scales_)));
    DecodeI8(codes_.data(), scales_.data(), end - begin, width_, wide_.data());
    return absl::OkStatus();
  }

  // Reads the part of wide_'s size from element `begin` on.
  absl::Status ReadNonZero(size_t begin) {
    if (!positions_.has_value()) RETURN_IF_ERROR(ReadPositions());
    const auto first = std::lower_bound(positions_->begin(), positions_->end(),
                                        static_cast<int64_t>(begin));
    const auto last = std::lower_bound(
        first, positions_->end(), static_cast<int64_t>(begin + wide_.size()));
    non_zero_.resize(static_cast<size_t>(last - first));
    RETURN_IF_ERROR(ReadPart(rows_.values[0],
                             static_cast<size_t>(first - positions_->begin()),
                             std::span(non_zero_)));
    std::fill(wide_.begin(), wide_.end(), 0.0f);
    for (size_t i = 0; i < non_zero_.size(); ++i) {
      wide_[static_cast<size_t>(first[static_cast<std::ptrdiff_t>(i)]) -
            begin] = non_zero_[i];
    }
    return absl::OkStatus();
  }

  absl::Status ReadPositions() {
    std::vector<int64_t> positions(
        static_cast<size_t>(rows_.positions->shape()[0]));
    RETURN_IF_ERROR(ReadPart(*rows_.positions, 0, std::span(positions)));
    int64_t next = 0;
    for (int64_t position : positions) {
      if (position < next ||
          position >= rows_.num_rows * static_cast<int64_t>(width_)) {
        return absl::InvalidArgumentError(
            absl::StrCat("position ", position,
                         " of a gradient is out of order, or not "
                         "below ",
                         rows_.num_rows, " rows of ", width_));
      }
      next = position + 1;
    }
    positions_ = std::move(positions);
    return absl::OkStatus();
  }

  const EncodedRows rows_;
  const size_t width_;
  std::vector<float> wide_;
  std::vector<uint16_t> narrow_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_;
  std::optional<std::vector<int64_t>> positions_;
  std::vector<float> non_zero_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_GRADIENT_READER_H_
