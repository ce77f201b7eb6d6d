"""cc_grpc_library, with the signature and the meaning it has in gRPC's own repository."""

load("//bazel:generate_cc.bzl", "generate_cc")

def _proto_only_name(dep):
    package, colon, name = dep.rpartition(":")
    return package + colon + "_" + name + "_only"

def cc_grpc_library(
        name,
        srcs,
        deps,
        proto_only = False,
        well_known_protos = False,
        generate_mocks = False,
        use_external = False,
        grpc_only = False,
        **kwargs):
    """Generates the C++ classes of the services in a proto file.

    Args:
      name: the cc_library to make.
      srcs: with grpc_only, one proto_library; otherwise .proto files.
      deps: with grpc_only, the cc_proto_library of `srcs`; otherwise other cc_grpc_library targets.
      proto_only: generate the messages alone.
      well_known_protos: `srcs` import google/protobuf/*.proto. Only without grpc_only.
      generate_mocks: also generate `*_mock.grpc.pb.h`.
      use_external: accepted for compatibility, unused.
      grpc_only: generate the services alone; what new code should use.
      **kwargs: passed to every target made.
    """
    if grpc_only and proto_only:
        fail("grpc_only and proto_only exclude each other")
    if not srcs:
        fail("srcs must not be empty")
    if grpc_only and len(srcs) > 1:
        fail("with grpc_only, srcs must be one proto_library")

    extra_deps = []
    if grpc_only:
        proto_targets = srcs
    else:
        proto_target = "_" + name + "_only"
        cc_proto_target = name if proto_only else "_" + name + "_cc_proto"
        proto_deps = [_proto_only_name(dep) for dep in deps]
        if well_known_protos:
            proto_deps += ["@com_google_protobuf//:%s_proto" % known for known in [
                "any",
                "api",
                "compiler_plugin",
                "descriptor",
                "duration",
                "empty",
                "field_mask",
                "source_context",
                "struct",
                "timestamp",
                "type",
                "wrappers",
            ]]
        native.proto_library(name = proto_target, srcs = srcs, deps = proto_deps, **kwargs)
        native.cc_proto_library(name = cc_proto_target, deps = [":" + proto_target], **kwargs)
        extra_deps.append(":" + cc_proto_target)
        proto_targets = [":" + proto_target]

    if not proto_only:
        codegen_target = "_" + name + "_grpc_codegen"
        generate_cc(
            name = codegen_target,
            srcs = proto_targets,
            generate_mocks = generate_mocks,
            **kwargs
        )
        native.cc_library(
            name = name,
            srcs = [":" + codegen_target],
            hdrs = [":" + codegen_target],
            deps = deps + extra_deps + ["@com_github_grpc_grpc//:grpc++_codegen_proto"],
            **kwargs
        )
