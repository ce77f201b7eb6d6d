"""Runs protoc with the gRPC plugin over the files of one proto_library."""

def _import_path(source, proto_info):
    root = proto_info.proto_source_root
    if root == ".":
        return source.path
    if not source.path.startswith(root + "/"):
        fail("%s is not below its import root %s" % (source.path, root))
    return source.path[len(root) + 1:]

def _generate_cc_impl(ctx):
    proto_info = ctx.attr.srcs[0][ProtoInfo]
    suffixes = [".grpc.pb.h", ".grpc.pb.cc"]
    if ctx.attr.generate_mocks:
        suffixes.append("_mock.grpc.pb.h")

    package = ctx.label.package + "/" if ctx.label.package else ""
    imports = []
    outputs = []
    for source in proto_info.direct_sources:
        path = _import_path(source, proto_info)
        if not path.startswith(package):
            fail("%s must be imported by its path from the root of its repository: " % path +
                 "strip_import_prefix and import_prefix are not supported here")
        stem = path[len(package):-len(".proto")]
        imports.append(path)
        outputs += [ctx.actions.declare_file(stem + suffix) for suffix in suffixes]

    out_dir = ctx.bin_dir.path
    if ctx.label.workspace_root:
        out_dir += "/" + ctx.label.workspace_root
    options = "generate_mock_code=true:" if ctx.attr.generate_mocks else ""

    arguments = ctx.actions.args()
    arguments.add(ctx.executable.plugin, format = "--plugin=protoc-gen-grpc=%s")
    arguments.add("--grpc_out=%s%s" % (options, out_dir))
    arguments.add_all(proto_info.transitive_proto_path, format_each = "-I%s")
    arguments.add_all(imports)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        tools = [ctx.executable.plugin],
        inputs = proto_info.transitive_sources,
        outputs = outputs,
        arguments = [arguments],
        mnemonic = "GrpcCodegen",
        progress_message = "Generating gRPC classes of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs))]

generate_cc = rule(
    implementation = _generate_cc_impl,
    attrs = {
        "generate_mocks": attr.bool(),
        "plugin": attr.label(
            default = "@com_github_grpc_grpc//src/compiler:grpc_cpp_plugin",
            executable = True,
            allow_single_file = True,
            cfg = "host",
        ),
        "srcs": attr.label_list(
            mandatory = True,
            providers = [ProtoInfo],
        ),
        "_protoc": attr.label(
            default = "@com_google_protobuf//:protoc",
            executable = True,
            allow_single_file = True,
            cfg = "host",
        ),
    },
)
