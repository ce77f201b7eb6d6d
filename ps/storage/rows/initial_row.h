// Initial weights of rows.

#ifndef HAWSER_PS_STORAGE_ROWS_INITIAL_ROW_H_
#define HAWSER_PS_STORAGE_ROWS_INITIAL_ROW_H_

#include <cstdint>
#include <span>

#include "ps/storage/table_spec.h"

namespace hawser::ps {

// Writes the initial weights of the row `key` of a table with this seed.
void WriteInitialRow(const Initializer& initializer, uint64_t seed,
                     uint64_t key, std::span<float> weights);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROWS_INITIAL_ROW_H_
