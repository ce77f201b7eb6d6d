#include "tests/gpu/rank_process.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "store/file/store.h"
#include "store/hash/store.h"
#include "tensor/device.h"
#include "tensor/memory/device_allocators.h"

namespace hawser::tests {
namespace {

int NumberFromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  int number = 0;
  HAWSER_CHECK(absl::SimpleAtoi(text, &number)) << name << " is " << text;
  return number;
}

}  // namespace

RankProcess GetRankProcess() {
  return {.rank = NumberFromEnvironment("HAWSER_GPU_TEST_RANK", 0),
          .size = NumberFromEnvironment("HAWSER_GPU_TEST_SIZE", 1)};
}

std::unique_ptr<store::Store> OpenNextStore() {
  static int number = 0;
  const int size = GetRankProcess().size;
  if (size == 1) return std::make_unique<store::HashStore>();
  const char* const directory = std::getenv("HAWSER_GPU_TEST_DIR");
  HAWSER_CHECK(directory != nullptr) << "HAWSER_GPU_TEST_DIR is not set";
  auto store = store::FileStore::Open(
      {.path = absl::StrCat(directory, "/", ++number), .num_members = size});
  HAWSER_CHECK(store.ok()) << store.status();
  return *std::move(store);
}

bool HasGpu() { return tensor::AllocatorFor(tensor::Cuda()).ok(); }

}  // namespace hawser::tests
