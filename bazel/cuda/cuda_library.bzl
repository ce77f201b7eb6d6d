"""cc_library for sources with CUDA kernels."""

load("@local_config_cuda//:toolkit.bzl", "CUDA_HOME", "HAS_CUDA")

# A100 and H100 get machine code; the intermediate code lets other GPUs from A100 on compile their own.
# One front-end pass serves them all: no kernel here asks which of them it runs on.
_ARCHITECTURES = ["-gencode=arch=compute_80,code=[sm_80,sm_90,compute_80]"]

_OPTIONS = [
    "-std=c++20",
    "-O3",
    "--expt-relaxed-constexpr",
    "-Werror=all-warnings",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-fstack-protector-strong",
    "-ccbin=/usr/bin/g++",
]

def _compile(ctx, source, context):
    # `.pic.o` is how cc_library recognizes objects it may put into a position-independent binary.
    stem = ctx.label.name + "/" + source.basename.rpartition(".")[0]
    output = ctx.actions.declare_file(stem + ".pic.o")
    arguments = ctx.actions.args()
    arguments.add_all(_ARCHITECTURES + _OPTIONS)
    arguments.add_all(context.defines, format_each = "-D%s")
    root = ctx.label.workspace_root or "."
    arguments.add_all([root, ctx.bin_dir.path + "/" + root], format_each = "-I%s")
    arguments.add_all(context.quote_includes, format_each = "-I%s")
    arguments.add_all(context.includes, format_each = "-I%s")
    arguments.add_all(context.system_includes, before_each = "-isystem")
    arguments.add_all(["-x", "cu", "-c", source, "-o", output])
    ctx.actions.run(
        executable = CUDA_HOME + "/bin/nvcc",
        inputs = depset([source] + ctx.files.hdrs, transitive = [context.headers]),
        outputs = [output],
        arguments = [arguments],
        # nvcc runs the host compiler and its own tools by name.
        env = {"PATH": CUDA_HOME + "/bin:/usr/bin:/bin"},
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % source.short_path,
    )
    return output

def _cuda_objects_impl(ctx):
    if not HAS_CUDA:
        fail("%s needs the CUDA toolkit: none in /usr/local/cuda; CUDA_HOME says where it is" % ctx.label)
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    return [DefaultInfo(files = depset([_compile(ctx, source, context) for source in ctx.files.srcs]))]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True),
        "srcs": attr.label_list(allow_files = [".cu", ".cu.cc"]),
    },
)

def cuda_library(name, srcs = [], hdrs = [], deps = [], visibility = None, testonly = None, tags = [], alwayslink = False):
    """A cc_library whose .cu sources are compiled by nvcc; skipped unless `--config=cuda`.

    Args:
      name: the cc_library to make.
      srcs: files ending in .cu or .cu.cc, for nvcc, and in .cc, for the host compiler.
      hdrs: headers of the library.
      deps: cc_library targets. The CUDA runtime comes without being named.
      visibility: as in cc_library.
      testonly: as in cc_library.
      tags: as in cc_library.
      alwayslink: as in cc_library.
    """
    compatible_with = select({
        "@hawser//:cuda": [],
        "//conditions:default": ["@hawser//bazel/cuda:unavailable"],
    })
    all_deps = deps + ["@local_config_cuda//:cudart"]
    device_srcs = [src for src in srcs if src.endswith(".cu") or src.endswith(".cu.cc")]
    if device_srcs:
        _cuda_objects(
            name = "_%s_objects" % name,
            srcs = device_srcs,
            hdrs = hdrs,
            target_compatible_with = compatible_with,
            testonly = testonly,
            tags = tags + ["manual"],
            deps = all_deps,
        )
    native.cc_library(
        name = name,
        srcs = [src for src in srcs if src not in device_srcs] +
               ([":_%s_objects" % name] if device_srcs else []),
        hdrs = hdrs,
        alwayslink = alwayslink,
        target_compatible_with = compatible_with,
        testonly = testonly,
        tags = tags,
        visibility = visibility,
        deps = all_deps,
    )
