#include "ps/distinct_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ps/ordered_keys.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/prefetch.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// How many rows ahead of use one is loaded.
constexpr size_t kAhead = 16;

}  // namespace

// With c equal pairs among m sampled keys of n, the rate of repeats is about
// c * n / m^2.
bool HasManyRepeats(std::span<const uint64_t> keys) {
  // A wrong estimate costs more with more keys.
  constexpr size_t kManyKeys = 2048;
  constexpr size_t kSlots = 1024;
  if (keys.size() < 2) return false;
  const size_t sample =
      std::min<size_t>(keys.size(), keys.size() < kManyKeys ? 128 : 256);
  // Places of sampled keys are multiples of size / sample, which is scaled.
  constexpr int kShift = 20;
  const size_t scaled = (keys.size() << kShift) / sample;
  const auto sampled = [&](size_t i) { return keys[i * scaled >> kShift]; };
  // The first sampled key with a hash: its number, from 1 on.
  std::array<uint16_t, kSlots> slots = {};
  size_t repeats = 0;
  for (size_t i = 0; i < sample; ++i) {
    const uint64_t key = sampled(i);
    size_t slot = HashKey(key) % kSlots;
    while (slots[slot] != 0 && sampled(slots[slot] - 1u) != key) {
      slot = (slot + 1) % kSlots;
    }
    repeats += slots[slot] != 0 ? 1 : 0;
    slots[slot] = static_cast<uint16_t>(i + 1);
  }
  return 10 * repeats * keys.size() >= sample * sample;
}

Tensor ExpandRows(const OrderedKeys& ordered, const std::vector<Tensor>& parts,
                  const tensor::Shape& shape, int64_t width) {
  Tensor rows = Tensor::Empty(shape);
  std::vector<const float*> distinct;
  distinct.reserve(ordered.keys().size());
  for (const Tensor& part : parts) {
    for (int64_t i = 0; i < part.dim(0); ++i) {
      distinct.push_back(part.data<float>() + i * width);
    }
  }
  float* next = rows.data<float>();
  const size_t bytes = static_cast<size_t>(width) * sizeof(float);
  const std::span<const uint32_t> positions = ordered.positions();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) {
      Prefetch(distinct[positions[i + kAhead]],
               std::min(bytes, kMaxPrefetchedBytes));
    }
    std::memcpy(next, distinct[positions[i]], bytes);
    next += width;
  }
  return rows;
}

Tensor CombineGradients(const OrderedKeys& ordered, const Tensor& gradients,
                        int64_t width) {
  const auto count = static_cast<int64_t>(ordered.keys().size());
  Tensor combined = Tensor::Empty({count, width});
  std::vector<bool> begun(ordered.keys().size());
  const float* source = gradients.data<float>();
  float* const rows = combined.data<float>();
  const size_t bytes = static_cast<size_t>(width) * sizeof(float);
  const std::span<const uint32_t> positions = ordered.positions();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) {
      PrefetchToWrite(rows + positions[i + kAhead] * width,
                      std::min(bytes, kMaxPrefetchedBytes));
    }
    const uint32_t position = positions[i];
    float* const row = rows + position * width;
    if (!begun[position]) {
      begun[position] = true;
      std::memcpy(row, source, bytes);
    } else {
      for (int64_t k = 0; k < width; ++k) row[k] += source[k];
    }
    source += width;
  }
  return combined;
}

Tensor AddParts(std::vector<Tensor> parts) {
  Tensor sum = std::move(parts[0]);
  float* const to = sum.data<float>();
  for (size_t i = 1; i < parts.size(); ++i) {
    const float* const from = std::as_const(parts[i]).data<float>();
    for (int64_t k = 0; k < sum.num_elements(); ++k) to[k] += from[k];
  }
  return sum;
}

}  // namespace hawser::ps
