"""The repositories Hawser needs, under the names by which the world knows them.

Each is wrapped in maybe(): a workspace that declares one of them first, say gRPC built from source,
has Hawser built with that one.
"""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:system_repository.bzl", "system_repository")
load("//bazel/cuda:cuda_repository.bzl", "cuda_repository")
load("//bazel/mpi:mpi_repository.bzl", "mpi_repository")
load("//bazel/precompiled:gcc_plugin_headers.bzl", "gcc_plugin_headers")
load("//bazel/system:absl.bzl", "ABSL_LINKOPTS", "ABSL_PACKAGES")

def _bazel_stand_ins():
    maybe(gcc_plugin_headers, name = "gcc_plugin_headers")
    maybe(
        system_repository,
        name = "rules_cc",
        files = {
            Label("//bazel/system:empty.BUILD"): "cc/BUILD.bazel",
            Label("//bazel/system:rules_cc_defs.bzl"): "cc/defs.bzl",
        },
    )
    maybe(
        system_repository,
        name = "remote_coverage_tools",
        files = {Label("//bazel/system:remote_coverage_tools.BUILD"): "BUILD.bazel"},
    )
    for rules in ["java", "proto"]:
        maybe(
            native.local_repository,
            name = "rules_" + rules,
            path = "/usr/share/bazel/rules/" + rules,
        )

def _rpc_libraries():
    maybe(
        system_repository,
        name = "com_google_protobuf",
        package = "protobuf-compiler libprotobuf-dev",
        files = {Label("//bazel/system:protobuf.BUILD"): "BUILD.bazel"},
        links = {
            "protoc": "/usr/bin/protoc",
            "src/google/protobuf": "/usr/include/google/protobuf",
        },
    )
    maybe(
        system_repository,
        name = "com_github_grpc_grpc",
        package = "protobuf-compiler-grpc libgrpc++-dev grpc-proto",
        files = {
            Label("//bazel/system:cc_grpc_library.bzl"): "bazel/cc_grpc_library.bzl",
            Label("//bazel/system:generate_cc.bzl"): "bazel/generate_cc.bzl",
            Label("//bazel/system:grpc.BUILD"): "BUILD.bazel",
            Label("//bazel/system:grpc_compiler.BUILD"): "src/compiler/BUILD.bazel",
            Label("//bazel/system:grpc_health.BUILD"): "src/proto/grpc/health/v1/BUILD.bazel",
            Label("//bazel/system:grpc_rules.BUILD"): "bazel/BUILD.bazel",
        },
        links = {
            "src/compiler/grpc_cpp_plugin": "/usr/bin/grpc_cpp_plugin",
            "src/compiler/grpc_python_plugin": "/usr/bin/grpc_python_plugin",
            "src/proto/grpc/health/v1/health.proto": "/usr/share/grpc-proto/grpc/health/v1/health.proto",
        },
    )
    maybe(
        system_repository,
        name = "com_google_absl",
        deps = ["@hawser//bazel/precompiled:system_headers"],
        libraries = {"absl": ABSL_LINKOPTS},
        packages = ABSL_PACKAGES,
        packages_dep = "absl",
    )
    maybe(
        system_repository,
        name = "boringssl",
        libraries = {
            "crypto": ["-lcrypto"],
            "ssl": ["-lssl", "-lcrypto"],
        },
    )

def _test_libraries():
    maybe(
        system_repository,
        name = "com_google_googletest",
        deps = ["@hawser//bazel/precompiled:test_headers"],
        libraries = {
            "gtest": ["-lgmock", "-lgtest", "-lpthread"],
            "gtest_main": ["-lgmock_main", "-lgmock", "-lgtest", "-lpthread"],
        },
    )
    maybe(
        system_repository,
        name = "com_google_benchmark",
        libraries = {
            "benchmark": ["-lbenchmark", "-lpthread"],
            "benchmark_main": ["-lbenchmark_main", "-lbenchmark", "-lpthread"],
        },
    )

def _tensor_libraries():
    maybe(
        system_repository,
        name = "onednn",
        libraries = {"onednn": ["-ldnnl"]},
    )
    maybe(
        system_repository,
        name = "com_google_highway",
        libraries = {
            "hwy": ["-lhwy"],
            "hwy_contrib": ["-lhwy_contrib", "-lhwy"],
        },
    )
    maybe(
        system_repository,
        name = "eigen",
        package = "libeigen3-dev",
        files = {Label("//bazel/system:eigen.BUILD"): "BUILD.bazel"},
        links = {"Eigen": "/usr/include/eigen3/Eigen"},
    )
    maybe(cuda_repository, name = "local_config_cuda")

def _other_libraries():
    maybe(
        system_repository,
        name = "com_github_facebookincubator_gloo",
        libraries = {"gloo": ["-lgloo", "-lpthread"]},
    )
    maybe(mpi_repository, name = "openmpi")
    maybe(
        system_repository,
        name = "cli11",
        libraries = {"cli11": []},
    )
    maybe(
        system_repository,
        name = "com_github_nlohmann_json",
        libraries = {"json": []},
    )
    maybe(
        system_repository,
        name = "hiredis",
        libraries = {"hiredis": ["-lhiredis"]},
    )
    maybe(
        system_repository,
        name = "rocksdb",
        libraries = {"rocksdb": ["-lrocksdb"]},
    )
    maybe(
        system_repository,
        name = "libmicrohttpd",
        libraries = {"libmicrohttpd": ["-lmicrohttpd"]},
    )
    maybe(
        system_repository,
        name = "com_github_jupp0r_prometheus_cpp",
        libraries = {"core": ["-lprometheus-cpp-core"]},
    )
    maybe(
        system_repository,
        name = "zlib",
        libraries = {"zlib": ["-lz"]},
    )

def hawser_deps():
    """Declares what is not declared yet of everything Hawser builds with."""
    _bazel_stand_ins()
    _rpc_libraries()
    _test_libraries()
    _tensor_libraries()
    _other_libraries()
