#include "collectives/gloo/backend.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "collectives/gloo/collectives.h"
#include "collectives/gloo/mesh.h"
#include "collectives/gloo/messages.h"

namespace hawser::collectives {
namespace {

class GlooBackend final : public Backend {
 public:
  explicit GlooBackend(std::unique_ptr<Mesh> mesh)
      : mesh_(std::move(mesh)), messages_(*mesh_), collectives_(*mesh_) {
    mesh_->Start(
        [this](int from, const Mesh::Frame& frame, ConstBytes text) {
          messages_.OnFrame(from, frame, text);
        },
        [this](const absl::Status& status) { messages_.OnFailure(status); });
  }
  ~GlooBackend() override { mesh_->Stop(); }

  std::string_view name() const override { return "gloo"; }

  absl::Status Barrier(async::MonotonicTime deadline) override {
    return collectives_.Barrier(deadline);
  }
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline) override {
    return collectives_.Broadcast(data, root, deadline);
  }
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline) override {
    return collectives_.AllReduce(pieces, reduction, deadline);
  }
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline) override {
    return collectives_.Reduce(input, output, reduction, root, deadline);
  }
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline) override {
    return collectives_.AllGather(input, outputs, deadline);
  }
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline) override {
    return collectives_.Gather(input, outputs, root, deadline);
  }
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, async::MonotonicTime deadline) override {
    return collectives_.Scatter(inputs, output, root, deadline);
  }
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             async::MonotonicTime deadline) override {
    return collectives_.ReduceScatter(inputs, output, reduction, deadline);
  }
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline) override {
    return collectives_.AllToAll(inputs, outputs, deadline);
  }
  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline) override {
    return messages_.Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) override {
    return messages_.Receive(data, from, tag, deadline);
  }
  void Abort(const absl::Status& status) override { (void)mesh_->Fail(status); }

 private:
  const std::unique_ptr<Mesh> mesh_;
  Messages messages_;
  Collectives collectives_;
};

bool IsLoopback(const GlooOptions& options) {
  if (!options.interface.empty()) return options.interface == "lo";
  return options.host == "localhost" || options.host == "::1" ||
         absl::StartsWith(options.host, "127.");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeGlooBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    const GlooOptions& options) {
  if (!IsLoopback(options) && !options.allow_insecure_network) {
    return absl::FailedPreconditionError(absl::StrCat(
        "refusing to connect through ",
        options.interface.empty() ? options.host : options.interface,
        ": it is not loopback, and Gloo's connections are neither encrypted "
        "nor authenticated; set allow_insecure_network if every machine that "
        "can connect is trusted"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Mesh> mesh,
                   Mesh::Connect(store,
                                 {.rank = rank,
                                  .size = size,
                                  .host = options.host,
                                  .interface = options.interface},
                                 timeout));
  return std::make_unique<GlooBackend>(std::move(mesh));
}

}  // namespace hawser::collectives
