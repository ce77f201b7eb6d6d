// Copies of rows to the places of a reply.

#ifndef HAWSER_PS_STORAGE_MEMORY_COPY_ROWS_H_
#define HAWSER_PS_STORAGE_MEMORY_COPY_ROWS_H_

#include <cstddef>
#include <cstdint>

namespace hawser::ps {

// Copies the first `row_bytes` bytes of rows[i] to copies + positions[i] *
// row_bytes, for each i below `count`.
using RowCopier = void (*)(const std::byte* const* rows,
                           const uint32_t* positions, size_t count,
                           std::byte* copies);

// For rows of a common size: a size that the compiler knows needs no call and
// no branches, and AVX, if the processor has it, half the stores. Returns null
// for other sizes.
RowCopier RowCopierFor(size_t row_bytes);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_COPY_ROWS_H_
