#include "tests/raw_grpc_client.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "async/future.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace hawser {

RawGrpcClient::RawGrpcClient(
    std::shared_ptr<const net::Credentials> credentials,
    const std::string& address)
    : credentials_(std::move(credentials)),
      verification_(credentials_, "worker0"),
      stub_(verification_.CreateChannel(address, {})) {}

absl::StatusOr<std::string> RawGrpcClient::Call(const std::string& path,
                                                const std::string& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  credentials_->Sign(context);
  const grpc::Slice slice(request);
  const grpc::ByteBuffer bytes(&slice, 1);
  grpc::ByteBuffer reply;
  async::Promise<void> done;
  async::Future<void> ended = done.future();
  stub_.UnaryCall(&context, path, grpc::StubOptions(), &bytes, &reply,
                  [&done](const grpc::Status& status) {
                    done.Set(absl::Status(
                        static_cast<absl::StatusCode>(status.error_code()),
                        status.error_message()));
                  });
  const absl::Status status = std::move(ended).Wait();
  if (!status.ok()) return status;
  grpc::Slice flat;
  if (!reply.DumpToSingleSlice(&flat).ok()) {
    return absl::DataLossError("cannot read the bytes of the reply");
  }
  return std::string(reinterpret_cast<const char*>(flat.begin()), flat.size());
}

}  // namespace hawser
