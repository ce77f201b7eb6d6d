// Content of new rows.

#ifndef HAWSER_PS_STORAGE_ROWS_NEW_ROW_H_
#define HAWSER_PS_STORAGE_ROWS_NEW_ROW_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ps/storage/table_format.h"

namespace hawser::ps {

// Writes the initial weights of the row `key`, before they are rounded to the
// table's dtype.
void WriteNewWeights(const TableFormat& format, uint64_t key,
                     std::span<float> weights);

// Writes everything but the weights of the new row `key`.
void WriteNewState(const TableFormat& format, uint64_t key, std::byte* row);

// Writes the whole row, laid out as in TableFormat::layout().
void WriteNewRow(const TableFormat& format, uint64_t key, std::byte* row);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROWS_NEW_ROW_H_
