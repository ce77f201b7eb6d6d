// Worker process for clients in other languages. Prints the address of the
// job's store when it serves, and exits at the end of its standard input.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/read/read_function.h"
#include "ps/storage/table_spec.h"
#include "ps/table_service.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace {

using hawser::Tensor;
namespace ps = hawser::ps;
namespace rpc = hawser::rpc;

inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"interop.Add"};
inline constexpr rpc::Function<std::vector<std::string>(
    std::vector<std::string>, int64_t)>
    kRepeat{"interop.Repeat"};
inline constexpr rpc::Function<void(std::string)> kFail{"interop.Fail"};
// Waits until the caller cancels; returns the number of callers that did.
inline constexpr rpc::Function<void()> kWait{"interop.Wait"};
inline constexpr rpc::Function<int64_t()> kNumGivenUp{"interop.NumGivenUp"};

// A read function: the dot products of a row and each of its arguments.
absl::StatusOr<ps::ReadFunction> MakeDot(const ps::TableSpec& table,
                                         std::span<const Tensor> arguments) {
  for (const Tensor& argument : arguments) {
    if (argument.num_elements() != table.width) {
      return absl::InvalidArgumentError("an argument is not as wide as a row");
    }
  }
  return ps::ReadFunction{
      .width = static_cast<int64_t>(arguments.size()),
      .read = [queries =
                   std::vector<Tensor>(arguments.begin(), arguments.end())](
                  const ps::RowView& row, std::span<float> result) {
        for (size_t i = 0; i < queries.size(); ++i) {
          result[i] = std::inner_product(row.weights.begin(), row.weights.end(),
                                         queries[i].data<float>(), 0.0f);
        }
      }};
}

absl::Status Serve(rpc::FunctionRegistry& registry,
                   std::atomic<int64_t>& given_up) {
  RETURN_IF_ERROR(registry.Register(kAdd, [](const Tensor& a, const Tensor& b) {
    return hawser::tensor::Add(a, b);
  }));
  RETURN_IF_ERROR(registry.Register(
      kRepeat,
      [](const std::vector<std::string>& words,
         int64_t times) -> absl::StatusOr<std::vector<std::string>> {
        if (times < 0 || times > 100) {
          return absl::OutOfRangeError(
              absl::StrCat(times, " is not in 0 to 100"));
        }
        std::vector<std::string> all;
        for (int64_t i = 0; i < times; ++i) {
          all.insert(all.end(), words.begin(), words.end());
        }
        return all;
      }));
  RETURN_IF_ERROR(registry.Register(kFail, [](const std::string& text) {
    return absl::DataLossError(text);
  }));
  RETURN_IF_ERROR(
      registry.Register(kWait, [&given_up]() -> hawser::async::Future<void> {
        auto promise = std::make_shared<hawser::async::Promise<void>>();
        auto ended = promise->future();
        auto registration =
            rpc::CurrentCall::Get()->cancellation().OnCancel([&, promise] {
              ++given_up;
              promise->Set(absl::CancelledError("cancelled by the caller"));
            });
        return std::move(ended).Then(
            [kept = std::move(registration)](absl::Status status) {
              return status;
            });
      }));
  return registry.Register(
      kNumGivenUp, [&given_up]() -> int64_t { return given_up.load(); });
}

absl::Status Run() {
  std::atomic<int64_t> given_up = 0;
  rpc::FunctionRegistry registry;
  RETURN_IF_ERROR(Serve(registry, given_up));
  RETURN_IF_ERROR(ps::RegisterReadFunction("interop.Dot", MakeDot));
  hawser::launch::WorkerOptions options{
      .identity = {.name = "served", .rank = 0, .job = "interop"},
      .meeting_place = {.master_port = 0},
      .registry = &registry};
  options.services.push_back(std::make_unique<ps::TableService>());
  ASSIGN_OR_RETURN(auto worker,
                   hawser::launch::Worker::Start(std::move(options)));
  std::cout << worker->master() << std::endl;
  std::cin.get();
  return worker->Shutdown(/*graceful=*/false);
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::cerr << "served_worker: " << status << "\n";
  return status.ok() ? 0 : 1;
}
