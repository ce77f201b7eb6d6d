#include "tensor/backend/cpu/onednn_conv2d.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "dnnl.hpp"
#include "tensor/backend/cpu/onednn_runtime.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cpu {
namespace {

using dnnl::memory;

using Key = std::array<int64_t, 17>;

Key MakeKey(ConvPass pass, DType dtype, bool bias, int threads,
            const Conv2dSizes& s) {
  const Conv2dOptions& o = s.options;
  return {static_cast<int64_t>(pass),
          static_cast<int64_t>(dtype),
          bias,
          threads,
          s.n,
          s.c,
          s.h,
          s.w,
          s.o,
          s.oh,
          s.ow,
          s.kh,
          s.kw,
          o.groups,
          o.stride[0] << 32 | o.stride[1],
          o.padding[0] << 32 | o.padding[1],
          o.dilation[0] << 32 | o.dilation[1]};
}

// Memory descriptors of a convolution, in any layout or in the dense layout of
// tensors.
struct Descs {
  memory::desc x, weight, bias, y;

  static Descs Of(DType dtype, const Conv2dSizes& s, bool has_bias, bool any) {
    using tag = memory::format_tag;
    const auto type = OneDnnType(dtype);
    const bool grouped = s.groups() > 1;
    const memory::dims weight_dims =
        grouped ? memory::dims{s.groups(), s.o / s.groups(), s.c / s.groups(),
                               s.kh, s.kw}
                : memory::dims{s.o, s.c, s.kh, s.kw};
    Descs d;
    d.x = {{s.n, s.c, s.h, s.w}, type, any ? tag::any : tag::nchw};
    d.weight = {weight_dims, type,
                any       ? tag::any
                : grouped ? tag::goihw
                          : tag::oihw};
    if (has_bias) d.bias = {{s.o}, type, tag::x};
    d.y = {{s.n, s.o, s.oh, s.ow}, type, any ? tag::any : tag::nchw};
    return d;
  }
};

// One argument: the layout of the tensor, the layout of the primitive, and the
// reorder between them if they differ.
struct Argument {
  int id = 0;
  memory::desc dense;
  memory::desc wanted;
  dnnl::reorder reorder;

  Argument() = default;
  Argument(int id_in, const memory::desc& dense_in,
           const memory::desc& wanted_in, bool output)
      : id(id_in), dense(dense_in), wanted(wanted_in) {
    if (dense == wanted) return;
    const dnnl::engine& engine = ThreadEngine();
    reorder = dnnl::reorder(
        output ? dnnl::reorder::primitive_desc(engine, wanted, engine, dense)
               : dnnl::reorder::primitive_desc(engine, dense, engine, wanted));
  }
  bool converts() const { return static_cast<bool>(reorder); }
};

struct ConvCall {
  dnnl::primitive primitive;
  std::array<Argument, 2> inputs;
  Argument output;
  memory::desc bias;
};

std::unique_ptr<ConvCall> CreateCall(ConvPass pass, DType dtype, bool bias,
                                     const Conv2dSizes& s) {
  const Descs any = Descs::Of(dtype, s, bias, true);
  const Descs dense = Descs::Of(dtype, s, bias, false);
  const Conv2dOptions& o = s.options;
  const memory::dims strides(o.stride.begin(), o.stride.end());
  const memory::dims padding(o.padding.begin(), o.padding.end());
  const memory::dims dilation = {o.dilation[0] - 1, o.dilation[1] - 1};
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const dnnl::engine& engine = ThreadEngine();
  const dnnl::primitive_attr attr;

  using Forward = dnnl::convolution_forward;
  const auto forward_desc =
      bias ? Forward::desc(dnnl::prop_kind::forward_training, kAlgorithm, any.x,
                           any.weight, any.bias, any.y, strides, dilation,
                           padding, padding)
           : Forward::desc(dnnl::prop_kind::forward_training, kAlgorithm, any.x,
                           any.weight, any.y, strides, dilation, padding,
                           padding);
  const Forward::primitive_desc forward(forward_desc, attr, engine, true);
  if (!forward) return nullptr;
  auto call = std::make_unique<ConvCall>();
  switch (pass) {
    case ConvPass::kForward: {
      call->primitive = Forward(forward);
      call->inputs[0] = {DNNL_ARG_SRC, dense.x, forward.src_desc(), false};
      call->inputs[1] = {DNNL_ARG_WEIGHTS, dense.weight, forward.weights_desc(),
                         false};
      call->output = {DNNL_ARG_DST, dense.y, forward.dst_desc(), true};
      call->bias = dense.bias;
      break;
    }
    case ConvPass::kInputGrad: {
      using Backward = dnnl::convolution_backward_data;
      const Backward::primitive_desc backward(
          Backward::desc(kAlgorithm, any.x, any.weight, any.y, strides,
                         dilation, padding, padding),
          attr, engine, forward, true);
      if (!backward) return nullptr;
      call->primitive = Backward(backward);
      call->inputs[0] = {DNNL_ARG_DIFF_DST, dense.y, backward.diff_dst_desc(),
                         false};
      call->inputs[1] = {DNNL_ARG_WEIGHTS, dense.weight,
                         backward.weights_desc(), false};
      call->output = {DNNL_ARG_DIFF_SRC, dense.x, backward.diff_src_desc(),
                      true};
      break;
    }
    case ConvPass::kWeightGrad: {
      using Backward = dnnl::convolution_backward_weights;
      const Backward::primitive_desc backward(
          Backward::desc(kAlgorithm, any.x, any.weight, any.y, strides,
                         dilation, padding, padding),
          attr, engine, forward, true);
      if (!backward) return nullptr;
      call->primitive = Backward(backward);
      call->inputs[0] = {DNNL_ARG_DIFF_DST, dense.y, backward.diff_dst_desc(),
                         false};
      call->inputs[1] = {DNNL_ARG_SRC, dense.x, backward.src_desc(), false};
      call->output = {DNNL_ARG_DIFF_WEIGHTS, dense.weight,
                      backward.diff_weights_desc(), true};
      break;
    }
  }
  return call;
}

// Allocates an argument in the layout of the primitive.
absl::StatusOr<Tensor> Scratch(const memory::desc& desc) {
  return Tensor::TryEmpty({static_cast<int64_t>(desc.get_size())},
                          {DType::kU8});
}

absl::Status Run(const ConvCall& call, std::array<const void*, 2> inputs,
                 const void* bias, void* output) {
  const dnnl::engine& engine = ThreadEngine();
  dnnl::stream& stream = ThreadStream();
  std::unordered_map<int, memory> args;
  std::array<Tensor, 3> scratch;
  for (size_t i = 0; i < 2; ++i) {
    const Argument& argument = call.inputs[i];
    memory dense(argument.dense, engine, const_cast<void*>(inputs[i]));
    if (argument.converts()) {
      ASSIGN_OR_RETURN(scratch[i], Scratch(argument.wanted));
      memory converted(argument.wanted, engine, scratch[i].raw_data());
      argument.reorder.execute(stream, dense, converted);
      dense = converted;
    }
    args.emplace(argument.id, dense);
  }
  if (bias != nullptr) {
    args.emplace(DNNL_ARG_BIAS,
                 memory(call.bias, engine, const_cast<void*>(bias)));
  }
  memory dense(call.output.dense, engine, output);
  if (!call.output.converts()) {
    args.emplace(call.output.id, dense);
    call.primitive.execute(stream, args);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(scratch[2], Scratch(call.output.wanted));
  memory converted(call.output.wanted, engine, scratch[2].raw_data());
  args.emplace(call.output.id, converted);
  call.primitive.execute(stream, args);
  call.output.reorder.execute(stream, converted, dense);
  return absl::OkStatus();
}

// Programs with more shapes start over.
constexpr size_t kMaxCalls = 256;

using CallCache = absl::flat_hash_map<Key, std::unique_ptr<ConvCall>>;

CallCache& ThreadCalls() {
  ThreadEngine();  // Created first, so that it outlives the calls.
  static thread_local CallCache calls;
  return calls;
}

}  // namespace

absl::StatusOr<bool> ConvolveOneDnn(ConvPass pass, DType dtype,
                                    const Conv2dSizes& sizes,
                                    const void* input0, const void* input1,
                                    const void* bias, void* output) {
  const OpenMpScope openmp;
  CallCache& calls = ThreadCalls();
  const bool has_bias = bias != nullptr;
  const Key key = MakeKey(pass, dtype, has_bias, openmp.threads(), sizes);
  auto it = calls.find(key);
  if (it == calls.end()) {
    if (calls.size() >= kMaxCalls) calls.clear();
    it = calls.emplace(key, CreateCall(pass, dtype, has_bias, sizes)).first;
  }
  if (it->second == nullptr) return false;
  RETURN_IF_ERROR(Run(*it->second, {input0, input1}, bias, output));
  return true;
}

}  // namespace hawser::tensor::cpu
