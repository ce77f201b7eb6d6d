#include <cstring>
#include <memory>
#include <string>

#include "async/status_macros.h"
#include "benchmarks/rpc_side.h"

namespace hawser::benchmarks {
namespace {

class MemcpySide final : public RpcSide {
 public:
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    from_.resize(size, 'x');
    to_.resize(size, 'y');
    ASSIGN_OR_RETURN(const double per_second, PerSecond(calls, [&] {
                       for (int64_t i = 0; i < calls; ++i) {
                         std::memcpy(to_.data(), from_.data(), size);
                         // Keeps the compiler from removing the copy.
                         asm volatile("" : : "r"(to_.data()) : "memory");
                       }
                       return absl::OkStatus();
                     }));
    return per_second * static_cast<double>(bytes);
  }

 private:
  std::string from_;
  std::string to_;
};

}  // namespace

std::unique_ptr<RpcSide> MakeMemcpySide() {
  return std::make_unique<MemcpySide>();
}

}  // namespace hawser::benchmarks
