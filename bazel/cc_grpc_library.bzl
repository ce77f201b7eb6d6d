"""cc_grpc_library of whichever gRPC the workspace uses."""

load("@com_github_grpc_grpc//bazel:cc_grpc_library.bzl", _cc_grpc_library = "cc_grpc_library")

cc_grpc_library = _cc_grpc_library
