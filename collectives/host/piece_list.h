// Several pieces of memory as one range.

#ifndef HAWSER_COLLECTIVES_HOST_PIECE_LIST_H_
#define HAWSER_COLLECTIVES_HOST_PIECE_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace hawser::collectives {

// The concatenation of pieces, which must outlive this. Ranges are read mostly
// in ascending order: the piece of the last one is remembered. For one thread.
class PieceList {
 public:
  explicit PieceList(std::span<const std::span<std::byte>> pieces)
      : pieces_(pieces) {
    for (const auto& piece : pieces) bytes_ += piece.size();
  }

  size_t bytes() const { return bytes_; }

  // Calls `use(memory, done)` for the consecutive parts of the range: `done`
  // bytes of it come before.
  template <class Use>
  void ForEachPart(size_t offset, size_t bytes, const Use& use) {
    if (offset < begin_) piece_ = begin_ = 0;
    size_t done = 0;
    while (done < bytes) {
      const std::span<std::byte> piece = pieces_[piece_];
      const size_t inside = offset + done - begin_;
      if (inside >= piece.size()) {
        begin_ += piece.size();
        ++piece_;
        continue;
      }
      const size_t part = std::min(piece.size() - inside, bytes - done);
      use(piece.subspan(inside, part), done);
      done += part;
    }
  }

  void CopyOut(size_t offset, size_t bytes, std::byte* to) {
    ForEachPart(offset, bytes, [to](std::span<std::byte> part, size_t done) {
      std::memcpy(to + done, part.data(), part.size());
    });
  }
  void CopyIn(size_t offset, size_t bytes, const std::byte* from) {
    ForEachPart(offset, bytes, [from](std::span<std::byte> part, size_t done) {
      // A range may be copied onto itself.
      if (part.data() != from + done) {
        std::memcpy(part.data(), from + done, part.size());
      }
    });
  }

 private:
  const std::span<const std::span<std::byte>> pieces_;
  size_t bytes_ = 0;
  // The piece that was used last, and where it begins.
  size_t piece_ = 0;
  size_t begin_ = 0;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_PIECE_LIST_H_
