#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/ids.h"

namespace hawser::tensor::cpu {
namespace {

// Bag i is ids[bounds[i]] up to ids[bounds[i + 1]].
struct Bags {
  std::vector<int64_t> ids;
  std::vector<int64_t> bounds;

  int64_t size() const { return static_cast<int64_t>(bounds.size()) - 1; }
};

absl::StatusOr<Bags> ReadBags(const Tensor& ids, const Tensor& offsets,
                              int64_t rows) {
  Bags bags;
  ASSIGN_OR_RETURN(bags.ids, ReadIds("EmbeddingBag", ids, rows));
  const int64_t n = ids.num_elements();
  ASSIGN_OR_RETURN(bags.bounds,
                   ReadIds("EmbeddingBag: offsets", offsets, n + 1));
  if (bags.bounds.empty() ? n != 0 : bags.bounds[0] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("EmbeddingBag: the first of the offsets must be 0: ",
                     offsets.DebugString()));
  }
  bags.bounds.push_back(n);
  for (size_t i = 1; i < bags.bounds.size(); ++i) {
    if (bags.bounds[i] < bags.bounds[i - 1]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "EmbeddingBag: offsets decrease from ", bags.bounds[i - 1], " to ",
          bags.bounds[i], " at position ", i));
    }
  }
  return bags;
}

// Sums, or keeps the largest of, the rows of one bag.
template <class C>
void ReduceBag(BagMode mode, const Tensor& weight, const int64_t* first,
               const int64_t* last, C* out, int64_t* max_ids, C* buffer) {
  const int64_t d = weight.dim(1);
  std::fill_n(out, d, C{0});
  if (mode == BagMode::kMax) std::fill_n(max_ids, d, int64_t{-1});
  for (const int64_t* id = first; id != last; ++id) {
    const C* const row =
        ReadBlock(weight.dtype(), weight.raw_data(), *id * d, 1, d, buffer);
    if (mode != BagMode::kMax) {
      for (int64_t j = 0; j < d; ++j) out[j] += row[j];
      continue;
    }
    for (int64_t j = 0; j < d; ++j) {
      if (max_ids[j] < 0 || row[j] > out[j] || row[j] != row[j]) {
        out[j] = row[j];
        max_ids[j] = *id;
      }
    }
  }
  if (mode == BagMode::kMean && first != last) {
    const C scale = C{1} / static_cast<C>(last - first);
    for (int64_t j = 0; j < d; ++j) out[j] *= scale;
  }
}

}  // namespace

absl::Status CpuBackend::EmbeddingBag(BagMode mode, const Tensor& weight,
                                      const Tensor& ids, const Tensor& offsets,
                                      Tensor& out, Tensor& max_ids) {
  ASSIGN_OR_RETURN(const Bags bags, ReadBags(ids, offsets, weight.dim(0)));
  ASSIGN_OR_RETURN(const Tensor table, weight.Contiguous());
  const int64_t d = weight.dim(1);
  int64_t* const max_data =
      mode == BagMode::kMax ? max_ids.data<int64_t>() : nullptr;
  VisitFloatComputeType(weight.dtype(), [&]<class C>() {
    std::vector<C> result(static_cast<size_t>(d)), buffer(result.size());
    for (int64_t i = 0; i < bags.size(); ++i) {
      ReduceBag(mode, table, bags.ids.data() + bags.bounds[i],
                bags.ids.data() + bags.bounds[i + 1], result.data(),
                max_data == nullptr ? nullptr : max_data + i * d,
                buffer.data());
      WriteBlock(out.dtype(), out.raw_data(), i * d, 1, d, result.data());
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::EmbeddingBagGrad(BagMode mode, const Tensor& dout,
                                          const Tensor& ids,
                                          const Tensor& offsets,
                                          const Tensor& max_ids,
                                          Tensor& dweight) {
  const int64_t rows = dweight.dim(0), d = dweight.dim(1);
  ASSIGN_OR_RETURN(const Bags bags, ReadBags(ids, offsets, rows));
  ASSIGN_OR_RETURN(const Tensor dense, dout.Contiguous());
  std::vector<int64_t> winners;
  if (mode == BagMode::kMax) {
    ASSIGN_OR_RETURN(const Tensor dense_ids, max_ids.Contiguous());
    const int64_t* const data = dense_ids.data<int64_t>();
    winners.assign(data, data + dense_ids.num_elements());
    for (size_t i = 0; i < winners.size(); ++i) {
      if (winners[i] < -1 || winners[i] >= rows) {
        return IdOutOfRange("EmbeddingBagGrad: max_ids",
                            static_cast<int64_t>(i), winners[i], rows);
      }
    }
  }
  VisitFloatComputeType(dout.dtype(), [&]<class C>() {
    C* const table = dweight.data<C>();
    for (int64_t i = 0; i < bags.size(); ++i) {
      const int64_t first = bags.bounds[i], last = bags.bounds[i + 1];
      const C* const g = dense.data<C>() + i * d;
      if (mode == BagMode::kMax) {
        for (int64_t j = 0; j < d; ++j) {
          const int64_t id = winners[i * d + j];
          if (id >= 0) table[id * d + j] += g[j];
        }
        continue;
      }
      const C scale =
          mode == BagMode::kMean ? C{1} / static_cast<C>(last - first) : C{1};
      for (int64_t k = first; k < last; ++k) {
        C* const row = table + bags.ids[k] * d;
        for (int64_t j = 0; j < d; ++j) row[j] += g[j] * scale;
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
