// Identity of a thread.

#ifndef HAWSER_RPC_GRPC_CALL_STREAM_THIS_THREAD_H_
#define HAWSER_RPC_GRPC_CALL_STREAM_THIS_THREAD_H_

namespace hawser::rpc {

// An address that differs between threads that run at the same time.
inline const void* ThisThread() {
  static thread_local const char here = 0;
  return &here;
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CALL_STREAM_THIS_THREAD_H_
