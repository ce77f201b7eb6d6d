// A trainer that adds 1 to all rows of the table "t" of the worker "ps0" in
// each push, one after the other, until it is killed.
//
//   pushing_trainer NAME STORE_URL RANK KEYS
//
// Writes 's' before each push and 'a' once it is acknowledged.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

// In one system call, so that nothing is lost when the process is killed.
absl::Status WriteLetter(char letter) {
  if (write(STDOUT_FILENO, &letter, 1) == 1) return absl::OkStatus();
  return absl::UnavailableError("cannot write to the standard output");
}

absl::Status Push(char** arguments) {
  launch::WorkerOptions options;
  options.identity = {.name = arguments[1]};
  options.identity.rank = std::atoi(arguments[3]);
  options.meeting_place.url = arguments[2];
  options.services.push_back(std::make_unique<ps::TableService>());
  ASSIGN_OR_RETURN(const std::unique_ptr<launch::Worker> worker,
                   launch::Worker::Start(std::move(options)));
  ASSIGN_OR_RETURN(const ps::Table table,
                   ps::Table::Open(worker->agent(), "t", {"ps0"}));
  const int64_t count = std::atoll(arguments[4]);
  const Tensor keys = Tensor::Arange(count, {.dtype = tensor::DType::kI64});
  const Tensor gradients = Tensor::Full({count, 1}, -1);
  while (true) {
    RETURN_IF_ERROR(WriteLetter('s'));
    RETURN_IF_ERROR(table.Push(keys, gradients).Wait());
    RETURN_IF_ERROR(WriteLetter('a'));
  }
}

}  // namespace
}  // namespace hawser::tests

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "pushing_trainer NAME STORE_URL RANK KEYS\n";
    return 2;
  }
  std::cerr << hawser::tests::Push(argv) << std::endl;
  return 1;
}
