// Weights of rows in f32.

#ifndef HAWSER_PS_STORAGE_ROW_CODEC_H_
#define HAWSER_PS_STORAGE_ROW_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "ps/storage/row_layout.h"

namespace hawser::ps {

// Copies the weights of `row` to `weights`, of the layout's width.
void ReadWeights(const RowLayout& layout, const std::byte* row, float* weights);

// Stores `weights` in `row`. 16-bit weights are rounded stochastically: the
// choice depends on `key` and on the number of updates stored in `row`, so that
// it is repeatable, but not the same in each update.
void WriteWeights(const RowLayout& layout, const float* weights, uint64_t key,
                  std::byte* row);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROW_CODEC_H_
