// Client that sends raw messages over a stream of gRPC.

#ifndef HAWSER_RPC_GRPC_TESTS_RAW_STREAM_H_
#define HAWSER_RPC_GRPC_TESTS_RAW_STREAM_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"

namespace hawser::rpc {

// One call of the method at `path`. Each operation waits until it has ended.
class RawStream {
 public:
  RawStream(const std::string& address, const std::string& path)
      : stub_(::grpc::CreateChannel(address,
                                    ::grpc::InsecureChannelCredentials())) {
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(60));
    stream_ = stub_.PrepareCall(&context_, path, &queue_);
    stream_->StartCall(nullptr);
    Next();
  }
  ~RawStream() {
    context_.TryCancel();
    if (!finished_) (void)Finish();
  }

  // Returns false if the stream has ended.
  bool Write(const std::string& bytes) {
    const ::grpc::Slice slice(bytes);
    stream_->Write(::grpc::ByteBuffer(&slice, 1), nullptr);
    return Next();
  }
  void WritesDone() {
    stream_->WritesDone(nullptr);
    Next();
  }
  // Returns nullopt if the stream has ended.
  std::optional<std::string> Read() {
    ::grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    if (!Next()) return std::nullopt;
    std::vector<::grpc::Slice> slices;
    EXPECT_TRUE(buffer.Dump(&slices).ok());
    std::string bytes;
    for (const ::grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }
  ::grpc::Status Finish() {
    ::grpc::Status status;
    stream_->Finish(&status, nullptr);
    Next();
    finished_ = true;
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  ::grpc::GenericStub stub_;
  ::grpc::CompletionQueue queue_;
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::GenericClientAsyncReaderWriter> stream_;
  bool finished_ = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TESTS_RAW_STREAM_H_
