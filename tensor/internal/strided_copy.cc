#include "tensor/internal/strided_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tensor/internal/convert.h"

namespace hawser::tensor::internal {
namespace {

struct LoopDim {
  int64_t size;
  int64_t dest_stride;
  int64_t source_stride;
};

// Nested loops that visit every index, outermost first.
struct LoopNest {
  int rank = 0;
  LoopDim dims[kMaxRank];
};

// Orders loops so that `dest` is written forwards, leaves out those of one
// iteration, and joins neighbours that step evenly through both layouts.
LoopNest MakeLoopNest(const Shape& shape, const Strides& dest,
                      const Strides& source) {
  LoopNest nest;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1) nest.dims[nest.rank++] = {shape[i], dest[i], source[i]};
  }
  std::stable_sort(nest.dims, nest.dims + nest.rank,
                   [](const LoopDim& a, const LoopDim& b) {
                     return a.dest_stride > b.dest_stride;
                   });
  int joined = 0;
  for (int i = 1; i < nest.rank; ++i) {
    LoopDim& outer = nest.dims[joined];
    const LoopDim& inner = nest.dims[i];
    if (outer.dest_stride == inner.size * inner.dest_stride &&
        outer.source_stride == inner.size * inner.source_stride) {
      outer = {outer.size * inner.size, inner.dest_stride, inner.source_stride};
    } else {
      nest.dims[++joined] = inner;
    }
  }
  nest.rank = std::min(nest.rank, joined + 1);
  return nest;
}

// Calls `body(dest, source)` with the byte addresses of each iteration of the
// loops of `nest`.
template <class Body>
void ForEachIteration(const LoopNest& nest, std::byte* dest,
                      int64_t dest_item_bytes, const std::byte* source,
                      int64_t source_item_bytes, Body body) {
  int64_t index[kMaxRank] = {};
  while (true) {
    body(dest, source);
    int i = nest.rank - 1;
    for (; i >= 0; --i) {
      const LoopDim& dim = nest.dims[i];
      dest += dim.dest_stride * dest_item_bytes;
      source += dim.source_stride * source_item_bytes;
      if (++index[i] < dim.size) break;
      index[i] = 0;
      dest -= dim.size * dim.dest_stride * dest_item_bytes;
      source -= dim.size * dim.source_stride * source_item_bytes;
    }
    if (i < 0) return;
  }
}

// `Item` has the size and alignment of the elements, not their type: assigning
// through it would break aliasing rules.
template <class Item>
void CopyItem(Item* dest, const Item* source) {
  std::memcpy(dest, source, sizeof(Item));
}

// Transposes tile by tile, so that lines of both layouts stay in the cache:
// `rows` is dense in `source`, `columns` in `dest`.
template <class Item>
void CopyTransposed(const LoopDim& rows, const LoopDim& columns, Item* dest,
                    const Item* source) {
  constexpr int64_t kTile = 32;
  for (int64_t row = 0; row < rows.size; row += kTile) {
    const int64_t row_end = std::min(row + kTile, rows.size);
    for (int64_t column = 0; column < columns.size; column += kTile) {
      const int64_t column_end = std::min(column + kTile, columns.size);
      for (int64_t i = row; i < row_end; ++i) {
        for (int64_t j = column; j < column_end; ++j) {
          CopyItem(dest + i * rows.dest_stride + j,
                   source + i + j * columns.source_stride);
        }
      }
    }
  }
}

template <class Item>
void CopyRow(const LoopDim& row, Item* dest, const Item* source) {
  for (int64_t i = 0; i < row.size; ++i) {
    CopyItem(dest + i * row.dest_stride, source + i * row.source_stride);
  }
}

// Elements whose bits are copied as they are.
template <class Item>
void CopyItems(LoopNest nest, void* dest, const void* source) {
  const auto for_each = [&](auto body) {
    ForEachIteration(nest, static_cast<std::byte*>(dest), sizeof(Item),
                     static_cast<const std::byte*>(source), sizeof(Item),
                     [&](std::byte* to, const std::byte* from) {
                       body(reinterpret_cast<Item*>(to),
                            reinterpret_cast<const Item*>(from));
                     });
  };
  const LoopDim row = nest.rank > 0 ? nest.dims[--nest.rank] : LoopDim{1, 1, 1};
  if (row.dest_stride == 1 && row.source_stride == 1) {
    for_each([&](Item* to, const Item* from) {
      std::memcpy(to, from, row.size * sizeof(Item));
    });
    return;
  }
  LoopDim* const end = nest.dims + nest.rank;
  LoopDim* const dense = std::find_if(nest.dims, end, [](const LoopDim& dim) {
    return dim.source_stride == 1;
  });
  if (row.dest_stride == 1 && dense != end) {
    const LoopDim rows = *dense;
    std::copy(dense + 1, end, dense);
    --nest.rank;
    for_each([&](Item* to, const Item* from) {
      CopyTransposed(rows, row, to, from);
    });
    return;
  }
  for_each([&](Item* to, const Item* from) { CopyRow(row, to, from); });
}

void ConvertItems(LoopNest nest, const StridedElements& dest,
                  const ConstStridedElements& source) {
  const LoopDim row = nest.rank > 0 ? nest.dims[--nest.rank] : LoopDim{1, 1, 1};
  const ConvertRowFn convert = ConvertRow(dest.dtype, source.dtype);
  ForEachIteration(
      nest, static_cast<std::byte*>(dest.data), ItemBytes(dest.dtype),
      static_cast<const std::byte*>(source.data), ItemBytes(source.dtype),
      [&](std::byte* to, const std::byte* from) {
        convert(from, row.source_stride, to, row.dest_stride, row.size);
      });
}

}  // namespace

void StridedCopy(const Shape& shape, StridedElements dest,
                 ConstStridedElements source) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  const LoopNest nest = MakeLoopNest(shape, dest.strides, source.strides);
  if (dest.dtype != source.dtype) {
    ConvertItems(nest, dest, source);
    return;
  }
  switch (ItemBytes(dest.dtype)) {
    case 1:
      return CopyItems<uint8_t>(nest, dest.data, source.data);
    case 2:
      return CopyItems<uint16_t>(nest, dest.data, source.data);
    case 4:
      return CopyItems<uint32_t>(nest, dest.data, source.data);
    default:
      return CopyItems<uint64_t>(nest, dest.data, source.data);
  }
}

}  // namespace hawser::tensor::internal
