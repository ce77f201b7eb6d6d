"""Writes nn_golden.json: results of PyTorch's layers and losses on small tensors.

Each case contains the parameters of a module by name, its inputs, its outputs, the
gradients of the outputs, and the resulting gradients of parameters and
floating-point inputs (float64). Dropout is off.
Made with PyTorch 1.13.1: python3 make_nn_golden.py > nn_golden.json
"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

gen = torch.Generator().manual_seed(5)
torch.set_default_dtype(torch.float64)
torch.manual_seed(5)


def rand(*shape):
    return torch.randn(shape, generator=gen)


def ids(high, *shape):
    return torch.randint(high, shape, generator=gen)


def encode(t):
    names = {torch.float64: "f64", torch.int64: "i64", torch.bool: "bool"}
    return dict(dtype=names[t.dtype], shape=list(t.shape),
                data=[round(x, 15) if isinstance(x, float) else int(x)
                      for x in t.detach().flatten().tolist()])


def case(module, inputs, forward=None):
    if module is not None:
        module.eval()
        for p in module.parameters():
            p.data.add_(0.1 * rand(*p.shape))  # No zeros or ones that hide an error.
            p.data = (p.data * 1e6).round() / 1e6
    for t in inputs.values():
        if t.is_floating_point():
            t.data = (t.data * 1e6).round() / 1e6
            t.requires_grad_(True)
    out = forward(module, **inputs) if forward else module(*inputs.values())
    outputs = out if isinstance(out, dict) else dict(output=out)
    given = {n: (rand(*o.shape) * 1e6).round() / 1e6 for n, o in outputs.items()}
    sum((outputs[n] * given[n]).sum() for n in outputs).backward()
    parameters = dict(module.named_parameters()) if module is not None else {}
    gradients = {n: encode(p.grad) for n, p in parameters.items() if p.grad is not None}
    gradients.update({n: encode(t.grad) for n, t in inputs.items()
                      if t.is_floating_point() and t.grad is not None})
    return dict(parameters={n: encode(p) for n, p in parameters.items()},
                inputs={n: encode(t) for n, t in inputs.items()},
                outputs={n: encode(o) for n, o in outputs.items()},
                output_gradients={n: encode(g) for n, g in given.items()},
                gradients=gradients)


def lstm(m, input, hidden=None, cell=None):
    out, (h, c) = m(input, None if hidden is None else (hidden, cell))
    return dict(output=out, hidden=h, cell=c)


def attention(m, query, key=None, value=None, mask=None, padding=None):
    key = query if key is None else key
    value = query if value is None else value
    out, weights = m(query, key, value, attn_mask=mask, key_padding_mask=padding)
    return dict(output=out, weights=weights)


def encoder(m, input, mask=None, padding=None):
    m.train()  # The inference path of 1.13 has no gradients.
    return m(input, src_mask=mask, src_key_padding_mask=padding)


causal = torch.ones(4, 4).triu(1).bool()
pad = torch.tensor([[False, False, False, True], [False, False, True, True],
                    [False, False, False, False]])

cases = dict(
    linear=case(nn.Linear(4, 3), dict(input=rand(2, 5, 4))),
    linear_no_bias=case(nn.Linear(4, 3, bias=False), dict(input=rand(4))),
    linear_relu=case(nn.Linear(4, 3), dict(input=rand(6, 4)),
                     lambda m, input: torch.relu(m(input))),
    conv2d=case(nn.Conv2d(2, 3, 3), dict(input=rand(2, 2, 5, 6))),
    conv2d_options=case(nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2),
                                  groups=2, bias=False), dict(input=rand(2, 4, 6, 5))),
    max_pool2d=case(nn.MaxPool2d(2), dict(input=rand(2, 2, 4, 5))),
    max_pool2d_options=case(nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 1)),
                            dict(input=rand(1, 2, 5, 4))),
    avg_pool2d=case(nn.AvgPool2d(2), dict(input=rand(2, 2, 4, 5))),
    avg_pool2d_options=case(nn.AvgPool2d((3, 2), stride=(2, 1), padding=(1, 1),
                                         count_include_pad=False), dict(input=rand(1, 2, 5, 4))),
    layer_norm=case(nn.LayerNorm(5), dict(input=rand(2, 3, 5))),
    layer_norm_2d=case(nn.LayerNorm((3, 4), eps=1e-2), dict(input=rand(2, 3, 4))),
    layer_norm_plain=case(nn.LayerNorm(5, elementwise_affine=False), dict(input=rand(3, 5))),
    embedding=case(nn.Embedding(6, 3), dict(ids=ids(6, 2, 4))),
    embedding_padding=case(nn.Embedding(6, 3, padding_idx=2),
                           dict(ids=torch.tensor([[2, 1], [5, 2]]))),
    embedding_bag_sum=case(nn.EmbeddingBag(6, 3, mode="sum"),
                           dict(ids=ids(6, 7), offsets=torch.tensor([0, 3, 3, 4]))),
    embedding_bag_mean=case(nn.EmbeddingBag(6, 3), dict(ids=ids(6, 3, 4))),
    embedding_bag_max=case(nn.EmbeddingBag(6, 3, mode="max"),
                           dict(ids=ids(6, 7), offsets=torch.tensor([0, 2, 6]))),
    lstm=case(nn.LSTM(3, 4), dict(input=rand(5, 2, 3)), lstm),
    lstm_layers=case(nn.LSTM(3, 4, num_layers=2, batch_first=True),
                     dict(input=rand(2, 5, 3), hidden=rand(2, 2, 4), cell=rand(2, 2, 4)), lstm),
    lstm_no_bias=case(nn.LSTM(3, 2, bias=False), dict(input=rand(2, 1, 3)), lstm),
    attention_self=case(nn.MultiheadAttention(6, 2), dict(query=rand(4, 3, 6)), attention),
    attention_cross=case(nn.MultiheadAttention(6, 3, batch_first=True),
                         dict(query=rand(3, 5, 6), key=rand(3, 4, 6), value=rand(3, 4, 6),
                              padding=pad), attention),
    attention_causal=case(nn.MultiheadAttention(4, 2, bias=False),
                          dict(query=rand(4, 3, 4), mask=causal, padding=pad), attention),
    attention_float_mask=case(
        nn.MultiheadAttention(4, 2),
        dict(query=rand(4, 3, 4)),
        lambda m, query: attention(m, query, mask=torch.arange(96).reshape(6, 4, 4) * 0.01)),
    encoder=case(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0),
                 dict(input=rand(4, 3, 6)), encoder),
    encoder_norm_first=case(nn.TransformerEncoderLayer(6, 3, 8, dropout=0.0, activation="gelu",
                                                       batch_first=True, norm_first=True),
                            dict(input=rand(3, 4, 6), mask=causal, padding=pad), encoder),
    relu=case(nn.ReLU(), dict(input=rand(7))),
    gelu=case(nn.GELU(), dict(input=rand(7))),
    silu=case(nn.SiLU(), dict(input=rand(7))),
    sigmoid=case(nn.Sigmoid(), dict(input=rand(7))),
    tanh=case(nn.Tanh(), dict(input=rand(7))),
    softmax=case(nn.Softmax(dim=1), dict(input=rand(2, 3, 2))),
    log_softmax=case(nn.LogSoftmax(dim=-1), dict(input=rand(2, 3))),
    flatten=case(nn.Flatten(), dict(input=rand(2, 3, 2, 2))),
    sequential=case(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                  nn.Linear(8, 3), nn.Tanh()), dict(input=rand(2, 1, 6, 6))),
)

probs = lambda *shape: torch.rand(*shape, generator=gen)
weights = torch.tensor([0.5, 1.0, 2.0, 0.25, 3.0])
labels = torch.tensor([1, 4, 2, 2, 0, 3])
some = torch.tensor([1, -1, 2, 2, -1, 3])
pixels = ids(3, 2, 2, 2)


def loss(function, *tensors, **options):
    inputs = {name: t for name, t in zip(("input", "target"), tensors)}
    inputs["target"] = inputs["target"].detach()
    target = inputs["target"]
    result = {}
    for reduction in ("mean", "sum", "none"):
        x = dict(input=inputs["input"].detach().clone())
        one = case(None, x, lambda m, input: function(input, target, reduction=reduction, **options))
        result[reduction] = dict(output=one["outputs"]["output"],
                                 output_gradient=one["output_gradients"]["output"],
                                 gradient=one["gradients"]["input"])
    return dict(input=encode(x["input"]), target=encode(target), **result)


zeros = rand(2, 3)
zeros[0, 0] = 0.0
corner = rand(2, 3)
losses = dict(
    cross_entropy=loss(F.cross_entropy, rand(6, 5), labels),
    cross_entropy_smoothing=loss(F.cross_entropy, rand(6, 5), labels, label_smoothing=0.1),
    cross_entropy_ignored=loss(F.cross_entropy, rand(6, 5), some, ignore_index=-1),
    cross_entropy_everything=loss(F.cross_entropy, rand(6, 5), some, ignore_index=-1,
                                  label_smoothing=0.3, weight=weights),
    cross_entropy_pixels=loss(F.cross_entropy, rand(2, 3, 2, 2), pixels, label_smoothing=0.2),
    nll=loss(F.nll_loss, rand(6, 5), labels),
    nll_weighted=loss(F.nll_loss, rand(6, 5), some, ignore_index=-1, weight=weights),
    mse=loss(F.mse_loss, rand(2, 3), rand(2, 3)),
    l1=loss(F.l1_loss, rand(2, 3), rand(2, 3)),
    smooth_l1=loss(F.smooth_l1_loss, rand(4, 3), rand(4, 3), beta=0.7),
    huber=loss(F.huber_loss, rand(4, 3), rand(4, 3), delta=0.6),
    bce=loss(F.binary_cross_entropy, probs(2, 3), probs(2, 3)),
    bce_corners=loss(F.binary_cross_entropy, torch.tensor([0.0, 1.0, 0.0, 1.0]),
                     torch.tensor([0.0, 1.0, 1.0, 0.0])),
    bce_with_logits=loss(F.binary_cross_entropy_with_logits, zeros, probs(2, 3)),
    bce_with_logits_weighted=loss(F.binary_cross_entropy_with_logits, 50 * rand(2, 3), probs(2, 3),
                                  pos_weight=torch.tensor([0.5, 2.0, 3.0])),
    kl_div=loss(F.kl_div, rand(2, 3).log_softmax(-1),
                torch.tensor([[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]])),
)

json.dump(dict(torch=torch.__version__, layers=cases, losses=losses), sys.stdout)
sys.stdout.write("\n")
