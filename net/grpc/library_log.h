// Log entries of gRPC and protobuf.

#ifndef HAWSER_NET_GRPC_LIBRARY_LOG_H_
#define HAWSER_NET_GRPC_LIBRARY_LOG_H_

namespace hawser::net {

// Sends what gRPC and protobuf log in this process to the log of the library
// (telemetry/log.h). Both log errors that any peer can cause, a line each: a
// TLS handshake of garbage, a string that is not UTF-8. Of each source line of
// theirs, one error a minute is logged, with the number of those left out.
//
// gRPC's information, which only GRPC_VERBOSITY turns on, is not limited.
//
// Replaces the functions that the process has set by gpr_set_log_function and
// google::protobuf::SetLogHandler. A program that sets its own afterwards
// receives everything there. Thread-safe.
void ForwardLibraryLogs();

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_LIBRARY_LOG_H_
